"""Options of vLLM on a command line: converts words as `--max-model-len 32768` to the options of an engine URL.

The parser is that of `vllm serve`. It imports torch, so that callers run this module as a program: `read_options`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from responses_app.engines.vllm.args import QUIET_ENVIRON, InvalidEngineOption, RaisingParser, engine_args, set_env
from responses_app.engines.vllm.inductor import skip_inductor
from responses_app.utils import imports

EXIT_INVALID: Final = 64
# First word of the program's check of options for the model of a folder.
CHECK: Final = "check-model"
READ_LIMIT_S: Final = 300.0
NO_OPTIONS: Final[Mapping[str, str]] = MappingProxyType({})
# Options of vLLM that the options of this server replace.
REPLACED: Final = {"model": "--model", "served_model_name": "--model NAME=SOURCE"}


def read_options(words: Sequence[str], folder: Path | None = None, others: Mapping[str, str] = NO_OPTIONS) -> dict[str, str]:
    """Return the options in `words` by name, as `max_model_len`. Raises InvalidEngineOption with the sentence of vLLM.

    With a `folder`, whose weights may be missing, vLLM checks them, and the `others` of the engine URL, for the model too.
    """
    environ = {**QUIET_ENVIRON, **os.environ} | ({"HF_HUB_OFFLINE": "1"} if folder else {})
    command = [
        sys.executable,
        *imports.SAFE_PATH,
        "-m",
        __name__,
        *([CHECK, str(folder), json.dumps(dict(others))] if folder else ()),
        *words,
    ]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=READ_LIMIT_S, check=False)
    if done.returncode == EXIT_INVALID:
        raise InvalidEngineOption(done.stderr.strip().splitlines()[-1])
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise InvalidEngineOption(f"vLLM's options could not be read: {lines[-1] if lines else f'exit code {done.returncode}'}")
    options: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return options


def check_model(folder: str, options: Mapping[str, str]) -> None:
    """Have vLLM check the options against the configuration of the model. Raises InvalidEngineOption.

    A failure without a reason of vLLM is no refusal: the start of the engine has the error.
    """
    set_env(folder)
    arguments = engine_args(folder, options)
    with suppress(OSError, RuntimeError, AssertionError, ImportError):
        try:
            arguments.create_engine_config()
        except (ValueError, NotImplementedError) as error:
            raise InvalidEngineOption(_sentence(error)) from error


def _sentence(error: Exception) -> str:
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(": ".join([*map(str, one["loc"][:1]), one["msg"].removeprefix("Value error, ")]) for one in problems)


def parse_words(words: Sequence[str]) -> dict[str, str]:
    """Parse the words with vLLM's parser, and return the text of each option. Raises InvalidEngineOption."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = AsyncEngineArgs.add_cli_args(type("_Strict", (RaisingParser, FlexibleArgumentParser), {})(add_help=False))
    texts: dict[str, list[str]] = {}
    for action in parser._actions:
        action.default = argparse.SUPPRESS
        if action.nargs != 0:
            action.type = _recording(action, texts)
    parsed = vars(parser.parse_args(list(words)))
    for name in parsed:
        if name in REPLACED:
            raise InvalidEngineOption(f"argument --{name.replace('_', '-')}: use {REPLACED[name]} of this server instead")
        if len(texts.get(name, ())) > 1:
            raise InvalidEngineOption(f"argument --{name.replace('_', '-')}: only one value is supported")
    return {name: texts[name][0] if name in texts else str(int(value is True)) for name, value in parsed.items()}


def _recording(action: argparse.Action, texts: dict[str, list[str]]) -> Callable[[str], Any]:
    """Return the type of `action`, which also records the text of the value."""
    convert: Any = action.type or str

    def record(text: str) -> Any:
        value = convert(text)
        texts.setdefault(action.dest, []).append(text)
        return value

    # argparse names the type in its message about an invalid value.
    record.__name__ = getattr(convert, "__name__", repr(convert))
    return record


def main(words: Sequence[str]) -> int:
    """Print the options as a JSON object, also checked for a model; the sentence of vLLM if there is an error."""
    try:
        folder, others, words = (words[1], json.loads(words[2]), words[3:]) if words[:1] == [CHECK] else ("", {}, words)
        options = parse_words(words)
        if folder:
            check_model(folder, others | options)
    except InvalidEngineOption as error:
        sys.stderr.write(f"{str(error).replace(chr(10), ' ')}\n")
        return EXIT_INVALID
    sys.stdout.write(f"{json.dumps(options)}\n")
    return 0


if __name__ == "__main__":
    imports.collect_rarely()
    skip_inductor()
    sys.exit(main(sys.argv[1:]))
