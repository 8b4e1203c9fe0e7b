"""CPU time of a token from the chunk of the engine to the padded server-sent event, in one process and without I/O.

    python -m bench.hot_path [--tokens 2000] [--rounds 7] [--cases harmony demo-chat] [--profile]

Each case is a text that one dialect parses, a token per chunk. The columns are microseconds of CPU time per token, the best of the
rounds: `parser` alone, `writer` with the parser, and `sse` with both and with frames and padding. The texts are prose with
Markdown, a text in Chinese, and the arguments of a call.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import django

from responses_app.dialects.base import Dialect, OutputParser, Turn
from responses_app.dialects.registry import open_dialect
from responses_app.dialects.tools.unknown_tools import UnknownToolFilter
from responses_app.engine_interface import Chunk
from responses_app.protocol.writer import Writer

ROOT = Path(__file__).resolve().parents[1]
TOOL: Final = {"type": "function", "name": "ask", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}
CHINESE: Final = "今天的天气很好，我们去公园散步。你想喝咖啡还是茶？服务器把每个事件写入数据库，然后再发送给客户端。"
JSON: Final = '{"q": "What does the log of a response hold, and who reads it?", "n": [1, 2, 3], "deep": {"a": true}} '
USER: Final = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Tell me."}]}


@dataclass(frozen=True)
class Case:
    """Tokens of an output, and the parser that reads the tokens."""

    name: str
    tokens: Sequence[int]
    make_parser: Callable[[], OutputParser]


def cases(length: int) -> Iterator[Case]:
    """Yield the cases of Harmony and of the demo model, each of about `length` tokens."""
    prose = (ROOT / "docs/architecture.md").read_text()
    arguments = '{"q": "' + " and ".join(["What does the log hold"] * (length // 5)) + '"}'
    yield from _harmony(length, prose, arguments)
    yield from _demo_chat(length, prose, arguments)


def _harmony(length: int, prose: str, arguments: str) -> Iterator[Case]:
    from responses_app.dialects.harmony.dialect import HarmonyDialect

    dialect = HarmonyDialect()
    encode = partial(dialect.encoding.encode, allowed_special="all")
    for name, text in (("prose", prose), ("chinese", CHINESE * length)):
        body = encode("<|channel|>final<|message|>") + encode(text)
        yield Case(f"harmony {name}", body[:length], partial(_parser, dialect))
    call = encode("<|channel|>commentary to=functions.ask<|constrain|>json<|message|>" + arguments)
    yield Case("harmony arguments", call[:length], partial(_parser, dialect))


def _demo_chat(length: int, prose: str, arguments: str) -> Iterator[Case]:
    dialect: Any = open_dialect(str(ROOT / "responses_app/demo/chat_files"))
    for name, text in (("prose", prose), ("chinese", CHINESE * length)):
        yield Case(f"demo-chat {name}", dialect.vocabulary.encode(text)[:length], partial(_parser, dialect))
    call = dialect.vocabulary.encode('<tool_call>\n{"name": "ask", "arguments": ' + arguments)
    yield Case("demo-chat arguments", call[:length], partial(_parser, dialect))


def _parser(dialect: Dialect) -> OutputParser:
    turn = Turn([USER], date(2026, 1, 1), tools=[TOOL], effort="none")
    return UnknownToolFilter(dialect.parser_for(turn), {"ask"})


def _parse(case: Case) -> None:
    parser = case.make_parser()
    for token in case.tokens:
        parser.feed(Chunk((token,)))


def _write(case: Case) -> None:
    from responses_app.runs.execute.output import encode

    parser, writer = case.make_parser(), _writer()
    for token in case.tokens:
        for delta in parser.feed(Chunk((token,))):
            writer.write_encoded(delta, encode)


def _send(case: Case) -> None:
    from responses_app.runs.execute.output import encode
    from responses_app.store.log.records import EventFrame
    from responses_app.wire import sse

    parser, writer = case.make_parser(), _writer()
    for token in case.tokens:
        for delta in parser.feed(Chunk((token,))):
            for number, kind, data in writer.write_encoded(delta, encode):
                sse.encode(EventFrame(number, kind, data, 5), obfuscate=True)


def _writer() -> Writer:
    numbers = count()
    writer = Writer({"id": "resp_1", "status": "in_progress"}, lambda prefix: f"{prefix}{next(numbers):048x}")
    writer.open()
    return writer


STAGES: Final = {"parser": _parse, "writer": _write, "sse": _send}


def measure(case: Case, work: Callable[[Case], None], rounds: int) -> float:
    """Return microseconds of CPU time per token, the best of `rounds`."""
    best = float("inf")
    for _ in range(rounds):
        began = time.thread_time()
        work(case)
        best = min(best, time.thread_time() - began)
    return 1e6 * best / len(case.tokens)


def _profile(case: Case) -> None:
    profile = cProfile.Profile()
    profile.runcall(_send, case)
    pstats.Stats(profile).sort_stats("tottime").print_stats(18)


def main() -> None:
    """Measure the cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--cases", nargs="+", default=[""], metavar="WORD", help="only cases whose name begins with one of these"
    )
    parser.add_argument("--profile", action="store_true")
    args = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    django.setup()
    print(f"{'µs of CPU per token':<24}" + "".join(f"{stage:>10}" for stage in STAGES))
    for case in cases(args.tokens):
        if case.name.startswith(tuple(args.cases)):
            figures = (measure(case, work, args.rounds) for work in STAGES.values())
            print(f"{case.name:<24}" + "".join(f"{figure:>10.2f}" for figure in figures), flush=True)
            if args.profile:
                _profile(case)


if __name__ == "__main__":
    main()
