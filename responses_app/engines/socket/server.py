"""Program of an engine worker with a Unix socket: vLLM in this process, for the web processes of this machine."""

from __future__ import annotations

import argparse
import asyncio
import gc
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from responses_app.engine_interface import EngineUnavailable
from responses_app.engines.socket.host import EngineHost
from responses_app.engines.vllm.args import InvalidEngineOption, set_env
from responses_app.engines.vllm.inductor import prepare_spawned_process
from responses_app.engines.vllm.inprocess import InProcessVllm
from responses_app.engines.vllm.server import EXIT_PERMANENT
from responses_app.utils import imports, unix_socket


def command(model: str, path: Path, options: Mapping[str, str]) -> list[str]:
    """Build the command line."""
    words = [word for option, value in options.items() for word in ("--option", f"{option}={value}")]
    return [sys.executable, *imports.SAFE_PATH, "-m", __name__, "--model", model, "--socket", str(path), *words]


def main(argv: Sequence[str]) -> int:
    """Serve until SIGTERM; return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--option", action="append", default=[], dest="options")
    args = parser.parse_args(argv)
    options = dict(option.split("=", 1) for option in args.options)
    import uvloop

    set_env(args.model)
    try:
        uvloop.run(_serve(InProcessVllm(args.model, options), args.socket))
    except InvalidEngineOption as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_PERMANENT
    except EngineUnavailable as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


async def _serve(engine: InProcessVllm, path: Path) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    host = EngineHost(engine)
    try:
        await engine.start()
        # What the start has made lives as long as the process.
        gc.collect()
        gc.freeze()
        await host.start(unix_socket.listen(path))
        await stopped.wait()
    finally:
        await host.close()
        await engine.close()


if __name__ == imports.SPAWNED:
    prepare_spawned_process()
if __name__ == "__main__":
    imports.collect_rarely()
    sys.exit(main(sys.argv[1:]))
