"""vLLM's own HTTP server as a program of ours: the engine that `embedded` loads, behind the token interface that `remote` speaks to."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from responses_app.engines.vllm.args import InvalidEngineOption, engine_fields, set_env

# The exit code that says: another attempt would end the same way.
HOPELESS = 78
# What our side of the token interface relies on. Its access log would be a line per request, in a file that nobody reads.
INTERFACE = {"enable_scale_out": True, "enable_prompt_tokens_details": True, "disable_uvicorn_access_log": True}


def command(model: str, name: str, host: str, port: int, options: Mapping[str, str]) -> list[str]:
    """The command line of this program. A key is passed in the environment, as VLLM_API_KEY: a command line is public."""
    more = [word for option, value in options.items() for word in ("--option", f"{option}={value}")]
    place = ["--model", model, "--name", name, "--host", host, "--port", str(port)]
    return [sys.executable, "-m", __name__, *place, *more]


def main(argv: Sequence[str]) -> int:
    """Serve until SIGTERM; the exit code."""
    parser = argparse.ArgumentParser()
    for word in ("--model", "--name", "--host"):
        parser.add_argument(word, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--option", action="append", default=[], dest="options")
    given = parser.parse_args(argv)
    options = dict(option.split("=", 1) for option in given.options)
    set_env(given.model)
    try:
        arguments = _arguments(given, options)
    except InvalidEngineOption as error:
        sys.stderr.write(f"{error}\n")
        return HOPELESS
    _run(arguments)
    return 0


def _arguments(given: argparse.Namespace, options: Mapping[str, str]) -> Any:
    """What `vllm serve` makes of its command line, with our fields in place of its own."""
    from vllm.config import StructuredOutputsConfig
    from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    fields = engine_fields(given.model, options)
    if isinstance(config := fields["structured_outputs_config"], dict):
        # The engine would take it as it is, but the server looks into it first.
        fields["structured_outputs_config"] = StructuredOutputsConfig(**config)
    arguments = make_arg_parser(FlexibleArgumentParser()).parse_args([])
    vars(arguments).update(fields, **INTERFACE, served_model_name=[given.name], host=given.host, port=given.port)
    validate_parsed_serve_args(arguments)
    return arguments


def _run(arguments: Any) -> None:
    import uvloop
    from vllm.entrypoints.launchers.api_server.entry import run_server

    uvloop.run(run_server(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
