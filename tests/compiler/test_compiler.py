"""Compiler: jobs beyond a limit are rejected, other projects are served meanwhile, and no process is left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from responses_app.compiler import compiler as compilers
from responses_app.compiler.compiler import Compiler, Overloaded, Rejected
from responses_app.compiler.jobs import CompileJob
from responses_app.dialects.constraints.bounds import ANY_WHITE_SPACE, COMPACT_WHITE_SPACE, MAX_STRING_CHARS, SPACED_WHITE_SPACE
from responses_app.dialects.constraints.structural_tag import json_value
from tests.support.dialects.large_grammars import ENDLESS, LARGE
from tests.support.waiting import eventually

LIMIT_S = 300


def lark(definition: str) -> CompileJob:
    return CompileJob("lark_to_ebnf", definition)


def endless(number: int) -> CompileJob:
    return lark(f"// {number}\n{ENDLESS}")


@pytest.fixture
def compiler() -> Compiler:
    return Compiler()


def workers(parent: int) -> list[int]:
    """Return the pids of the compiler processes of a process."""
    worker_ids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                is_child = int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == parent
                if is_child and b"compiler.worker" in (entry / "cmdline").read_bytes():
                    worker_ids.append(int(entry.name))
            except OSError:
                continue
    return worker_ids


def alive(pids: Iterable[int]) -> list[int]:
    """Return the pids of the running processes."""
    live_ids = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        live_ids += [pid] if state not in "ZX" else []
    return live_ids


def test_a_result_and_a_refusal_are_given_to_everybody_who_asks_and_kept(compiler: Compiler) -> None:
    async def main() -> None:
        good, bad = lark('start: "a"'), lark("start:(")
        results = await asyncio.gather(*(compiler.run(f"p{n}", good) for n in range(5)))
        assert set(results) == {'root ::= r0\nr0 ::= t0\nt0 ::= "a"'}
        for _ in range(2):
            with pytest.raises(Rejected, match="cannot be read"):
                await compiler.run("p", bad)

    asyncio.run(main())
    compiler._pool = NoPool()  # type: ignore[assignment]
    assert asyncio.run(compiler.run("q", lark('start: "a"')))


@pytest.mark.engine
@pytest.mark.parametrize(
    ("white_space", "separator"),
    [
        (COMPACT_WHITE_SPACE, '\\"s\\"" ":" basic_string'),
        (SPACED_WHITE_SPACE, '(":" | ": ")'),
        (ANY_WHITE_SPACE, "whitespace{0, 24}"),
    ],
)
def test_a_structural_tag_comes_back_with_bounds(compiler: Compiler, white_space: int, separator: str) -> None:
    schema = {"type": "object", "properties": {"s": {"type": "string"}}, "required": ["s"]}
    tag = {"type": "structural_tag", "format": json_value(schema, white_space)}
    bounded = json.loads(asyncio.run(compiler.run("p", CompileJob("structural_tag", json.dumps(tag)))))
    assert bounded["format"]["type"] == "grammar"
    assert f"[max_chars={MAX_STRING_CHARS}]" in bounded["format"]["grammar"]
    assert separator in bounded["format"]["grammar"]


@pytest.mark.engine
def test_a_structural_tag_that_xgrammar_refuses_is_rejected_with_its_reason(compiler: Compiler) -> None:
    tag = {"type": "structural_tag", "format": json_value({"type": "string", "pattern": "["})}
    with pytest.raises(Rejected, match=r"Unclosed|regex"):
        asyncio.run(compiler.run("p", CompileJob("structural_tag", json.dumps(tag))))


class NoPool:
    """Pool that fails when used."""

    async def run(self, owner: str, payload: bytes, *, cpu_s: int | None = None) -> bytes:
        raise AssertionError(owner)


@pytest.mark.slow
def test_slow_job_is_refused_and_the_next_job_runs(compiler: Compiler) -> None:
    async def main() -> None:
        with pytest.raises(Rejected, match=r"more than \d+ (seconds|MiB)"):
            await compiler.run("p", endless(0))
        assert await compiler.run("p", lark('start: "b"'))

    asyncio.run(asyncio.wait_for(main(), LIMIT_S))
    began = time.monotonic()
    with pytest.raises(Rejected):
        asyncio.run(compiler.run("p", endless(0)))
    assert time.monotonic() - began < 5, "the refusal was not cached"


@pytest.mark.slow
@pytest.mark.parametrize("definition", LARGE.values(), ids=LARGE)
def test_large_expansion_of_a_grammar_ends_at_a_limit(compiler: Compiler, definition: str) -> None:
    with pytest.raises(Rejected, match=r"more than \d+ (seconds|MiB)|at most \d+ are allowed"):
        asyncio.run(compiler.run("p", lark(definition)))


def test_a_project_does_not_wait_for_the_queue_of_another(compiler: Compiler) -> None:
    async def main() -> None:
        await asyncio.gather(*(compiler.run(f"q{n}", lark(f'start: "{n}"')) for n in range(2)))
        attacks = [asyncio.create_task(compiler.run("p", endless(n))) for n in range(8)]
        for n in range(10, 20):
            assert await compiler.run("q", lark(f'start: "{n}"'))
        assert sum(one.done() for one in attacks) < 4, "all of it was compiled first"
        for one in attacks:
            one.cancel()
        await asyncio.wait(attacks)

    asyncio.run(asyncio.wait_for(main(), LIMIT_S))


def test_a_job_ends_with_the_last_one_who_waits_for_it(compiler: Compiler) -> None:
    async def main() -> None:
        before = set(workers(os.getpid()))
        waiting = [asyncio.create_task(compiler.run("p", endless(0))) for _ in range(2)]
        await eventually(lambda: bool(set(workers(os.getpid())) - before))
        mine = set(workers(os.getpid())) - before
        waiting[0].cancel()
        await asyncio.wait(waiting[:1])
        assert alive(mine)
        waiting[1].cancel()
        await eventually(lambda: not alive(mine))

    asyncio.run(asyncio.wait_for(main(), LIMIT_S))


def test_a_queue_has_an_end(compiler: Compiler) -> None:
    async def main() -> None:
        # One job may run, and MAX_WAITING may wait.
        waiting = [asyncio.create_task(compiler.run("p", endless(n))) for n in range(compilers.MAX_WAITING + 2)]
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        with pytest.raises(Overloaded, match="Try again"):
            done.pop().result()
        for one in waiting:
            one.cancel()
        await asyncio.wait(waiting)

    asyncio.run(asyncio.wait_for(main(), LIMIT_S))


def test_a_process_that_was_killed_is_replaced(compiler: Compiler) -> None:
    before = set(workers(os.getpid()))
    asyncio.run(compiler.run("p", lark('start: "a"')))
    # The pool of an earlier test may have started another process meanwhile.
    started = set(workers(os.getpid())) - before
    assert started
    for pid in started:
        os.kill(pid, signal.SIGKILL)
    assert asyncio.run(compiler.run("p", lark('start: "b"')))


@pytest.mark.slow
def test_a_schema_is_compiled_without_torch(compiler: Compiler) -> None:
    pytest.importorskip("xgrammar")
    before = set(workers(os.getpid()))
    tag = '{"type": "structural_tag", "format": {"type": "json_schema", "json_schema": {"type": "string", "pattern": "%s"}}}'
    assert asyncio.run(compiler.run("p", CompileJob("structural_tag", tag % "^a+$")))
    with pytest.raises(Rejected):
        asyncio.run(compiler.run("p", CompileJob("structural_tag", tag % "[")))
    (pid,) = set(workers(os.getpid())) - before
    loaded = Path(f"/proc/{pid}/maps").read_text()
    assert "xgrammar" in loaded
    assert "libtorch" not in loaded


PARENT = """
import asyncio, sys
from responses_app.compiler.compiler import shared
from responses_app.compiler.jobs import CompileJob
from tests.support.dialects.large_grammars import ENDLESS
asyncio.run(shared.run("p", CompileJob("lark_to_ebnf", 'start: "a"')))
print("ready", flush=True)
asyncio.run(shared.run("p", CompileJob("lark_to_ebnf", sys.argv[1])))
"""


def test_no_process_outlives_a_server_that_was_killed() -> None:
    command = [sys.executable, "-c", PARENT, ENDLESS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline()
        pids = workers(parent.pid)
        assert pids
        parent.kill()
    asyncio.run(eventually(lambda: not alive(pids)))
