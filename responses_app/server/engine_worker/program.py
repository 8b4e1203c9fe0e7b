"""Engine worker, the program of `manage.py engine`: restarts a vLLM server and ends leftover processes."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from project.env import check_token, read_variable
from responses_app.engines import orphan_guard
from responses_app.installation.data_dir import SERVE, InUse, UnusableFolder, data_dir, lock, make_folder
from responses_app.outbound_http.certificates import authorities_problem
from responses_app.server.bootstrap import install, ports
from responses_app.server.bootstrap.log_redirect import tail
from responses_app.server.bootstrap.progress import Progress
from responses_app.server.cli import model_specs
from responses_app.server.cli.args import parse_host, parse_port
from responses_app.server.engine_worker.spec import WorkerSpec, plan, plan_socket
from responses_app.server.engine_worker.vllm_process import VllmFailed, VllmProcess
from responses_app.server.model_files import opening
from responses_app.server.model_files.errors import CannotServe
from responses_app.server.model_files.prepare import prepare, with_options_of
from responses_app.server.supervision import process_tree
from responses_app.server.supervision.child import PARENT, notify_ready
from responses_app.utils.backoff import Backoff
from responses_app.utils.json_output import json_output
from responses_app.utils.log_format import log_to_stderr

logger = logging.getLogger("responses.engine")

# Pauses between a failure and the next start. An engine that was ready for STEADY_S starts with the first pause again.
PAUSES_S = (0.5, 1.0, 2.0, 5.0, 10.0)
STEADY_S = 10.0
# Attempts for a server that was never ready: vLLM may be unable to serve the model.
FIRST_TRIES = 3
KEY = "RESPONSES_ENGINE_KEY"
EXPECTED = (ports.CannotListen, model_specs.InvalidModelSpec, CannotServe, InUse, UnusableFolder, ImproperlyConfigured)


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options to an argparse parser or a Django command parser."""
    parser.add_argument(
        "--model",
        default=model_specs.DEFAULT,
        metavar="SOURCE",
        help="folder, hub name, demo model, or vllm:///folder?option=value",
    )
    parser.add_argument("--name", type=_parse_name, help=f"name to serve it under (default: as {SERVE} names it)")
    parser.add_argument("--host", type=parse_host, default="127.0.0.1", help="address to listen on (default: %(default)s)")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--port", type=parse_port, default=0, help="port to listen on (default: a free one, which is printed)")
    place.add_argument(
        "--socket", action="store_true", help="serve this machine over a Unix socket in the data folder, not over HTTP"
    )
    parser.add_argument(
        "--key", type=_parse_key, help=f"key that requests must bear; better given as {KEY}, which other users cannot see"
    )
    parser.add_argument("--fit", action="store_true", help="use the largest context that fits into the memory")
    parser.add_argument("--ready", type=int, help=argparse.SUPPRESS)  # Descriptor on which the parent process is notified.


def _parse_name(text: str) -> str:
    """Refuse a name that RESPONSES_MODELS, with entries NAME=URL between white space, cannot have."""
    if not re.fullmatch(r"[^\s=]+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a name: it is empty, or has white space or =")
    return text


def _parse_key(text: str) -> str:
    """Refuse an empty key, as of a variable of a script that is not set: without a key, everybody may use the engine."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"the key is empty: give a key, or leave out --key and {KEY}")
    try:
        return check_token("--key", text)
    except ImproperlyConfigured as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def main(argv: Sequence[str]) -> int:
    """Run the worker until a signal. Return the exit code."""
    parser = argparse.ArgumentParser(prog=os.environ.get("RESPONSES_PROG", "engine"), description="Run one engine.")
    declare(parser)
    options = parser.parse_args(argv)
    if PARENT in os.environ:
        # A server, which reads the output of its processes.
        return _main(options)
    # stdout has the URL of the engine.
    with json_output(2):
        try:
            return _main(options)
        except Exception:
            traceback.print_exc()
            return 1


def _main(options: argparse.Namespace) -> int:
    log_to_stderr()
    signal.signal(signal.SIGTERM, _leave)
    if options.ready is not None:
        os.set_inheritable(options.ready, False)
    if parent := os.environ.pop(PARENT, ""):
        process_tree.die_with_parent(int(parent))
    try:
        return _begin(options)
    except EXPECTED as error:
        logger.error("%s", error)
        return 1
    except KeyboardInterrupt:
        return 130


def _begin(options: argparse.Namespace) -> int:
    if problem := authorities_problem():
        raise CannotServe(problem)
    key = None if options.socket else options.key or read_key()
    model = f"{options.name}={options.model}" if options.name else options.model
    entry = model_specs.models_setting((model,), None, _demo)
    if options.ready is None:  # A supervisor has checked the model.
        prepared = prepare(entry, Progress(), options.fit, install.has_gpu)
        opening.download_all(prepared.downloads, Progress())
        # Web processes on another host know the model by its name on the hub, not by the folder of the cache.
        entry = with_options_of(entry, prepared.setting)
    os.environ.setdefault("HF_HUB_OFFLINE", "1" if model_specs.on_disk(entry) else "0")
    folder = plan(entry, options.host, options.port).folder(data_dir())
    make_folder(data_dir())
    held = lock(folder)
    try:
        # Before the port is checked: the server of an earlier worker may still use the port.
        orphan_guard.kill_orphans(folder)
        if options.socket:
            return _run(plan_socket(entry, data_dir()), folder, options.ready)
        with ports.reserve(options.host, options.port) as place:
            made = plan(entry, options.host, place.getsockname()[1], key)
            return _run(made, folder, options.ready)
    finally:
        os.close(held)


def read_key() -> str | None:
    """Return the key of the environment, which the vLLM server does not inherit. Raises ImproperlyConfigured for an empty key."""
    key = check_token(KEY, read_variable(KEY))
    if not key and KEY in os.environ:
        raise ImproperlyConfigured(f"{KEY} is empty: set it to the key that requests must bear, or unset it")
    os.environ.pop(KEY, None)
    return key or None


def _demo(name: str) -> Path:
    from responses_app.demo.build import build

    with Progress().step(f"Preparing {name}"):
        return build(name, data_dir() / "models")


def _run(made: WorkerSpec, folder: Path, ready: int | None) -> int:
    orphan_guard.guard_children(folder)
    process_tree.adopt_orphans()
    guards = frozenset(process_tree.descendants(os.getpid()))
    worker = WorkerProgram(made, folder, guards, ready)
    try:
        return asyncio.run(worker.run())
    finally:
        worker.clear()


class WorkerProgram:
    """Supervisor of a vLLM server: restarts a failed server after ending the remaining processes."""

    def __init__(self, plan: WorkerSpec, folder: Path, guards: frozenset[int] = frozenset(), ready: int | None = None) -> None:
        self.plan = plan
        self.engine = VllmProcess(plan, folder)
        self._guards, self._ready = guards, ready
        self._since: float | None = None  # Monotonic time at which this server was ready.
        self._served = False

    async def run(self) -> int:
        """Run until a signal. Return exit code 0, or 1 if the server was never ready."""
        loop, work = asyncio.get_running_loop(), asyncio.ensure_future(self._run_server())
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, work.cancel)
        with suppress(asyncio.CancelledError):
            return await work
        logger.info("%s: stopping", self.plan.name)
        return 0

    def clear(self) -> None:
        """End all processes of the server in bounded time."""
        process_tree.end_descendants(os.getpid(), spare=self._guards)
        self.engine.clean_up()

    async def _run_server(self) -> int:
        backoff = Backoff(PAUSES_S)
        while True:
            logger.info("%s: starting vLLM; it writes to %s", self.plan.name, self.engine.log)
            self._since, began = None, time.monotonic()
            try:
                await self.engine.run(lambda began=began: self._is_ready(began))  # type: ignore[misc]
            except VllmFailed as failed:
                if self._since is not None and time.monotonic() - self._since > STEADY_S:
                    backoff.reset()
                pause_s = backoff.next_pause_s()
                if not self._again(failed, backoff.failures):
                    return 1
            self.clear()
            await asyncio.sleep(pause_s)

    def _is_ready(self, began: float) -> None:
        self._since = time.monotonic()
        logger.info("%s: ready after %.1f s", self.plan.name, self._since - began)
        if not self._served:
            self._served = True
            sys.stdout.write(f"{self.plan.url}\n")
            sys.stdout.flush()
            notify_ready(self._ready)

    def _again(self, failed: VllmFailed, failures: int) -> bool:
        """Log the failure. Return True to start the server again."""
        again = self._served or not (failed.hopeless or failures >= FIRST_TRIES)
        if again:
            logger.error("%s: %s; it is started again", self.plan.name, failed)
        else:
            end = {"detail": tail(self.engine.log)}
            logger.error("%s: %s. The end of %s:", self.plan.name, failed, self.engine.log, extra=end)
        return again


def _leave(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
