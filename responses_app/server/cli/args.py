"""Command line arguments of `bin/serve`."""

from __future__ import annotations

import argparse
import math
import os
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches

from responses_app.installation.data_dir import MANAGE
from responses_app.server.bootstrap.ports import EMPTY_HOST, address

EPILOG = """
A SOURCE is a folder with a checkpoint, a name on the model hub such as Qwen/Qwen3-0.6B or OWNER/NAME@REVISION, an
engine URL, or one of the demo models demo-chat (the default) and demo-harmony. The demo models are tiny, come with the
code and run on any CPU. A model of the hub is downloaded into the cache that other programs use as well.

Options that this server does not know, and everything after `--`, are options of vLLM for the only model, as in
--model X --max-model-len 32768 --tensor-parallel-size 2. vLLM checks these before the start.

signals (with --worker or --web):
  USR1                restart the web processes one after another; engines stay as they are

environment:
  DATABASE_URL        a Postgres of your own; without it an embedded one is started
  RESPONSES_API_KEY   the key to serve with; without it one is made and stored
  RESPONSES_DATA_DIR  where everything is stored (default: .data beside the code)
  RESPONSES_MODELS    what to serve if neither --model nor --engine is given: name=engine-url ...
  HF_TOKEN            token for private and gated models; HF_ENDPOINT is another hub, HF_HOME the folder of the cache
"""

# Maximum number of web processes; each has its own connections to Postgres.
MAX_WEB_PROCESSES = 64
# Similarity to an option of this server from which an unknown option counts as misspelt.
MISSPELT = 0.84


@dataclass(frozen=True, slots=True)
class Options:
    """Parsed options: `models` and `engines` as typed, `drain` in seconds, `web` as a number of processes."""

    host: str = "127.0.0.1"
    port: int = 8000
    models: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    drain: float = 10.0
    web: int = 1
    worker: bool = False
    reasoning_parser: str | None = None
    tool_parser: str | None = None
    chat_template: str | None = None
    demo_tools: bool = False
    fit: bool = False
    # Words of the command line that are options of vLLM.
    engine_options: tuple[str, ...] = ()
    # LoRA adapters as typed: NAME=FOLDER.
    adapters: tuple[str, ...] = ()

    @property
    def is_supervised(self) -> bool:
        """Return True if several processes serve."""
        return self.worker or self.web > 1

    @property
    def parsers(self) -> dict[str, str]:
        """Return the parsers and the chat template that are named, by query key of an engine URL."""
        named = {
            "reasoning_parser": self.reasoning_parser,
            "tool_parser": self.tool_parser,
            "chat_template": self.chat_template,
        }
        return {key: name for key, name in named.items() if name}

    @property
    def address(self) -> str:
        """Return `http://host:port` for clients on this machine."""
        return f"http://{address(self.host, self.port)}"


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options to an argparse parser or a Django command parser."""
    parser.add_argument("--host", type=parse_host, default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=parse_port, default=8000, help="port to listen on (default: %(default)s)")
    parser.add_argument(
        "--model", action="append", default=[], dest="models", metavar="[NAME=]SOURCE", help="model to serve; may be repeated"
    )
    parser.add_argument(
        "--engine",
        type=_url,
        action="append",
        default=[],
        dest="engines",
        metavar="URL",
        help="engine to use: http://host:port, script:///tape, vllm:///path; may be repeated for several http:// engines of one model",
    )
    _declare_model_options(parser)
    parser.add_argument(
        "--demo-tools",
        action="store_true",
        help="offer the MCP server docs/examples/mcp_server.py as `demo`, and a web search over the pages of docs/examples/pages",
    )
    parser.add_argument(
        "--fit", action="store_true", help="serve each model with the largest context that fits into the memory"
    )
    parser.add_argument(
        "--drain",
        type=_seconds,
        default=10.0,
        metavar="SECONDS",
        help="how long running responses may take at the end (default: %(default)g)",
    )
    parser.add_argument(
        "--worker",
        action="store_true",
        help=f"run each model in a worker process of its own ({MANAGE} engine), which stays when web processes are restarted",
    )
    parser.add_argument(
        "--web",
        type=_count,
        default=1,
        metavar="N",
        help="web processes on the same port and database (default: %(default)s); more than one means --worker as well",
    )


def _declare_model_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the only model."""
    for kind in ("reasoning", "tool"):
        parser.add_argument(
            f"--{kind}-parser",
            metavar="NAME",
            help=f"{kind} parser for the model (names of vLLM), or none (default: by the family of the model, see {MANAGE} model)",
        )
    parser.add_argument(
        "--chat-template", metavar="FILE", help="chat template in place of the model's own, or the name of one of the model's"
    )
    parser.add_argument(
        "--lora",
        action="append",
        default=[],
        dest="adapters",
        metavar="NAME=FOLDER",
        help="LoRA adapter of the only model, served as a model of this name; may be repeated",
    )


def parse(argv: Sequence[str]) -> Options:
    """Parse the command line. Prints help or a usage error and raises SystemExit, as argparse does."""
    parser = argparse.ArgumentParser(
        prog=os.environ.get("RESPONSES_PROG", "serve"),
        description="Serve the Responses API.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    declare(parser)
    mine, separator, after = list(argv), "--" in argv, []
    if separator:
        mine, after = mine[: mine.index("--")], mine[mine.index("--") + 1 :]
    options, unknown = parser.parse_known_args(mine)
    _check_unknown(parser, unknown)
    return Options(
        options.host,
        options.port,
        tuple(options.models),
        tuple(options.engines),
        options.drain,
        options.web,
        options.worker,
        options.reasoning_parser,
        options.tool_parser,
        options.chat_template,
        options.demo_tools,
        options.fit,
        (*unknown, *after),
        tuple(options.adapters),
    )


def _check_unknown(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Exit with a usage error for words that cannot be options of vLLM, and for misspelt options of this server."""
    if words and not words[0].startswith("-"):
        parser.error(f"unrecognized arguments: {words[0]}")
    known_options = [option for action in parser._actions for option in action.option_strings]
    for word in words:
        if word.startswith("--") and (close := get_close_matches(word.partition("=")[0], known_options, n=1, cutoff=MISSPELT)):
            parser.error(f"unrecognized arguments: {word} (did you mean {close[0]}? Options of vLLM can follow after --)")


def is_bin_serve() -> bool:
    """Return True for `bin/serve`, which installs packages, and serves a demo model where none is named."""
    return os.environ.get("RESPONSES_PROG") == "bin/serve"


def redacted_command(argv: Sequence[str]) -> str:
    """Return the command line for a shell, without the keys of engine URLs and without the hub's token."""
    program = os.environ.get("RESPONSES_PROG", "bin/serve")
    words = [
        "TOKEN" if before in ("--hf-token", "--hf_token") else word for before, word in zip(["", *argv], argv, strict=False)
    ]
    words = [re.sub(r"(?<=^--hf[-_]token=).*", "TOKEN", word) for word in words]
    return shlex.join([program, *(re.sub(r"(?<=://)[^/@,\s]*@", "", word) for word in words)])


def parse_host(text: str) -> str:
    """Refuse an empty address, as of a variable of a script that is not set. Raises ArgumentTypeError."""
    if not text.strip():
        raise argparse.ArgumentTypeError(EMPTY_HOST)
    return text


def parse_port(text: str) -> int:
    """Parse the number of a port. Raises ArgumentTypeError."""
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)


def _count(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) <= MAX_WEB_PROCESSES:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {MAX_WEB_PROCESSES}")
    return int(text)


def _seconds(text: str) -> float:
    with suppress(ValueError):
        if 0 <= (seconds := float(text)) < math.inf:
            return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 on")


def _url(text: str) -> str:
    scheme, separator, _ = text.partition("://")
    if not separator or scheme not in ("http", "https", "script", "vllm"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an engine URL: it begins with http://, https://, script:// or vllm://"
        )
    return text
