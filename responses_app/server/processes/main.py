"""Server process: Postgres, database, first key, engines and Daphne on a single event loop, or the supervisor of several processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from responses_app.local import data_dir as local_data_dir
from responses_app.sandbox.launch import packages
from responses_app.server.bootstrap import ports, startup
from responses_app.server.bootstrap.database import check_settings, close_connections, prepare, sign_in_link
from responses_app.server.bootstrap.startup import CannotStart
from responses_app.server.cli import model_specs
from responses_app.server.cli.args import Options, parse
from responses_app.server.cli.banner import banner, model_lines, served
from responses_app.server.cli.progress import Progress
from responses_app.server.postgres.cluster import Postgres, PostgresError
from responses_app.server.processes import package_installer, sandbox_starter, supervisor
from responses_app.server.processes.log_redirect import terminal
from responses_app.server.processes.process_tree import die_with_parent

# vLLM's INFO messages repeat figures of our own log.
QUIET = {"VLLM_LOGGING_LEVEL": "WARNING", "TOKENIZERS_PARALLELISM": "false"}


def main(argv: Sequence[str]) -> int:
    """Serve until stopped. Return the exit code."""
    outer = os.environ.pop("RESPONSES_OUTER", "")
    if outer:
        die_with_parent(int(outer))
    # SIGUSR1 restarts web processes, which only a supervisor has.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    options, progress, folder = parse(argv), Progress(terminal()), local_data_dir.data_dir()
    # Browsers send cookies to all ports of a host, so each server has its own cookie names.
    own = {**QUIET, "RESPONSES_COOKIE_SUFFIX": str(options.port)}
    os.environ.update({**own, **os.environ, "RESPONSES_DATA_DIR": str(folder)})
    if options.demo_tools:
        os.environ["RESPONSES_DEMO_TOOLS"] = "1"
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    # A secret may be a file (project/env.py).
    given = os.environ.get("DATABASE_URL") or os.environ.get("DATABASE_URL_FILE")
    postgres = None if given else Postgres(folder, supervisor.settings_for(options.web))
    try:
        _choose(options, folder, progress)
        with _sandbox(folder):
            serve = supervisor.serve if options.is_supervised else _serve
            code = serve(options, folder, postgres, progress)
    except (CannotStart, PostgresError, model_specs.InvalidModelSpec, ports.CannotListen) as error:
        progress.line(f"serve: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        if postgres is not None:
            postgres.stop()
    progress.line("Stopped.")
    return code


def _choose(options: Options, folder: Path, progress: Progress) -> None:
    """Set RESPONSES_MODELS unless the operator has, and HF_HUB_OFFLINE."""
    if options.models or options.engines or not os.environ.get("RESPONSES_MODELS"):
        engine = model_specs.one_engine(options.engines)
        models = model_specs.models_setting(options.models, engine, lambda name: _demo(name, folder, progress))
        os.environ["RESPONSES_MODELS"] = models
    os.environ["RESPONSES_MODELS"] = model_specs.with_parsers(os.environ["RESPONSES_MODELS"], options.parsers)
    # The hub's library reads the variable once; an unreachable hub costs minutes.
    os.environ.setdefault("HF_HUB_OFFLINE", "1" if model_specs.on_disk(os.environ["RESPONSES_MODELS"]) else "0")


@contextmanager
def _sandbox(folder: Path) -> Iterator[None]:
    """Load the settings, and have a runner of the sandbox start when needed, unless the operator has one. Raises CannotStart."""
    has_runner = bool(os.environ.get("RESPONSES_SANDBOX_URL") or os.environ.get("RESPONSES_SANDBOX_URL_FILE"))
    if not has_runner:
        os.environ["RESPONSES_SANDBOX_URL"] = sandbox_starter.socket_url(folder)
        os.environ["RESPONSES_SANDBOX_READER_URL"] = sandbox_starter.socket_url(folder, sandbox_starter.READER_SOCKET)
    check_settings()
    from responses_app.tools import sandbox_access

    setting = sandbox_access.code_interpreter()
    if setting == "on" and (problem := sandbox_access.sandbox_problem()):
        raise CannotStart(f"RESPONSES_CODE_INTERPRETER is on, but the sandbox does not work. {problem}")
    if has_runner:
        yield
        return
    options = ["--options", sandbox_access.runner_options().to_json()]
    bare, waiting = ["--without-packages", *options], ["--without-waiting", *options]
    has_packages = setting != "off" and sandbox_access.has_packages()
    with (
        package_installer.installing(folder / packages.FOLDER, wanted=has_packages),
        sandbox_starter.started(folder, waiting if has_packages else bare),
        sandbox_starter.started(folder, bare, sandbox_starter.READER_SOCKET),
    ):
        yield


def _serve(options: Options, folder: Path, postgres: Postgres | None, progress: Progress) -> int:
    loop = startup.reactor()
    if postgres is not None:
        with progress.step("Starting Postgres"):
            postgres.start()
    return _work(options, folder, loop, postgres, progress)


def _work(
    options: Options, folder: Path, loop: asyncio.AbstractEventLoop, postgres: Postgres | None, progress: Progress
) -> int:
    key = prepare(folder, progress)

    from django.core.exceptions import ImproperlyConfigured

    from responses_app.runs import manager
    from responses_app.server.processes.lifecycle import ServerLifecycle

    try:
        life = ServerLifecycle(loop, manager.current(), options.drain, postgres)
    except (ImproperlyConfigured, OSError) as error:
        raise CannotStart(str(error)) from error
    try:
        with progress.step(f"Starting the engine for {', '.join(served())}"):
            started = startup.start(life, folder / "logs" / "engine.log")
        if not started:
            return 130
        for line in model_lines(manager.current().served.values()):
            progress.line(line)
        from project.asgi import application, gate, limits
        from responses_app.server.http.server import tcp
        from responses_app.tools import sandbox_access

        # A sign-in link is made only for a terminal.
        note = sandbox_access.packages_note()
        shown = (key, sign_in_link()) if progress.live else ("", "")
        ready = banner(options, served(), *shown, note)
        if failure := life.listen(application, tcp(options.host, options.port), lambda: progress.line(ready), gate, limits):
            raise ports.CannotListen(failure)
        return life.code
    finally:
        progress.line("Stopping ...")
        life.close()
        close_connections()


def _demo(name: str, folder: Path, progress: Progress) -> Path:
    from responses_app.demo.build import build

    with progress.step(f"Preparing {name}"):
        return build(name, folder / "models")


if __name__ == "__main__":
    startup.exit_now(main(sys.argv[1:]))
