"""vLLM's own HTTP server as a child program, with the token endpoints for the `http:` engine."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import active_children
from typing import Any

from responses_app.engines.vllm.args import InvalidEngineOption, engine_fields, set_env
from responses_app.engines.vllm.core_watch import CoreWatch, step_limit_s
from responses_app.engines.vllm.inductor import prepare_spawned_process
from responses_app.utils import imports

# Exit code of a permanent failure: a restart would fail the same way.
EXIT_PERMANENT = 78
# Status of `GET /health` while the core hangs: the server is a gateway of the core.
STATUS_CORE_AWAY = 504
# Options required by the `http:` engine. The access log would have a line per request, in a file without readers.
SERVER_OPTIONS = {"enable_scale_out": True, "enable_prompt_tokens_details": True, "disable_uvicorn_access_log": True}


def command(model: str, name: str, host: str, port: int, options: Mapping[str, str]) -> list[str]:
    """Build the command line. Pass a key in the environment as VLLM_API_KEY: command lines are public."""
    option_args = [word for option, value in options.items() for word in ("--option", f"{option}={value}")]
    server_args = ["--model", model, "--name", name, "--host", host, "--port", str(port)]
    return [sys.executable, *imports.SAFE_PATH, "-m", __name__, *server_args, *option_args]


def main(argv: Sequence[str]) -> int:
    """Serve until SIGTERM; return the exit code."""
    parser = argparse.ArgumentParser()
    for word in ("--model", "--name", "--host"):
        parser.add_argument(word, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--option", action="append", default=[], dest="options")
    args = parser.parse_args(argv)
    options = dict(option.split("=", 1) for option in args.options)
    set_env(args.model)
    try:
        arguments = _arguments(args, options)
    except InvalidEngineOption as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_PERMANENT
    _run(arguments)
    return 0


def _arguments(args: argparse.Namespace, options: Mapping[str, str]) -> Any:
    """Build the arguments of `vllm serve`, with the fields from `engine_fields`."""
    from vllm.config import StructuredOutputsConfig
    from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    fields = engine_fields(args.model, options)
    if isinstance(config := fields["structured_outputs_config"], dict):
        # AsyncEngineArgs accepts a dict, but the server reads its attributes first.
        fields["structured_outputs_config"] = StructuredOutputsConfig(**config)
    arguments = make_arg_parser(FlexibleArgumentParser()).parse_args([])
    vars(arguments).update(fields, **SERVER_OPTIONS, served_model_name=[args.name], host=args.host, port=args.port)
    validate_parsed_serve_args(arguments)
    return arguments


def _run(arguments: Any) -> None:
    import uvloop
    from vllm.entrypoints.launchers.api_server.entry import run_server

    watch_core()
    uvloop.run(run_server(arguments))


def watch_core() -> None:
    """Have each `GET /health` look for a core that hangs. vLLM itself notices a core that ends."""
    from starlette.exceptions import HTTPException
    from vllm.v1.engine.async_llm import AsyncLLM

    async def check_health(llm: Any) -> None:
        await check_processes(llm)
        if not watches:
            watches.append(CoreWatch(llm.is_paused, active_children(), step_limit_s()))
        watches[0].tick()
        if watches[0].is_away:
            raise HTTPException(STATUS_CORE_AWAY, "The core of the engine does not answer.")

    check_processes, watches = AsyncLLM.check_health, list[CoreWatch]()
    AsyncLLM.check_health = check_health


if __name__ == imports.SPAWNED:
    prepare_spawned_process()
if __name__ == "__main__":
    imports.collect_rarely()
    sys.exit(main(sys.argv[1:]))
