"""Server process: Postgres, database, first key, engines and Daphne on a single event loop, or the supervisor of several processes."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from django.core.exceptions import ImproperlyConfigured

from project.env import check_token, read_variable
from project.pool import set_server_timeout
from responses_app.engine_interface import EngineUnavailable
from responses_app.engines.vllm.inductor import prepare_spawned_process
from responses_app.installation import data_dir as local_data_dir
from responses_app.observability import events, slots
from responses_app.outbound_http.certificates import authorities_problem
from responses_app.sandbox.launch import packages
from responses_app.server.bootstrap import install, ports
from responses_app.server.bootstrap.database import check_settings, close_connections, prepare, sign_in_link
from responses_app.server.bootstrap.errors import CannotStart
from responses_app.server.bootstrap.log_redirect import terminal
from responses_app.server.bootstrap.progress import Progress
from responses_app.server.cli import model_specs
from responses_app.server.cli.args import Options, is_bin_serve, parse, redacted_command
from responses_app.server.cli.banner import banner, model_lines, served
from responses_app.server.model_files import opening
from responses_app.server.model_files.download import Download
from responses_app.server.model_files.errors import CannotServe
from responses_app.server.model_files.prepare import prepare as prepare_models
from responses_app.server.postgres.cluster import Postgres, PostgresError
from responses_app.server.processes import archiver, engine_options, package_installer, sandbox_starter, startup, supervisor
from responses_app.server.supervision.process_tree import die_with_parent
from responses_app.utils import imports

if TYPE_CHECKING:
    from responses_app.server.processes.lifecycle import ServerLifecycle

# vLLM's INFO messages repeat figures of our own log.
QUIET_ENVIRON = {
    "VLLM_LOGGING_LEVEL": "WARNING",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_VERBOSITY": "error",
    "HF_HUB_VERBOSITY": "error",
}
# Errors of a port; other errors are those of an address.
PORT_ERRORS = (errno.EADDRINUSE, errno.EACCES)
# A database of the operator is for more than a trial of a demo model.
NO_MODELS = (
    "no model is named, and DATABASE_URL names a Postgres of your own: set RESPONSES_MODELS (name=engine-url), or give --engine "
    "or --model, such as --model demo-chat"
)


def main(argv: Sequence[str]) -> int:
    """Serve until stopped. Return the exit code."""
    outer = os.environ.pop("RESPONSES_OUTER", "")
    if outer:
        die_with_parent(int(outer))
    # SIGUSR1 restarts web processes, which only a supervisor has.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    options, progress, folder = parse(argv), Progress(terminal()), local_data_dir.data_dir()
    # Browsers send cookies to all ports of a host, so each server has its own cookie names.
    environ = {**QUIET_ENVIRON, "RESPONSES_COOKIE_SUFFIX": str(options.port)}
    os.environ.update({**environ, **os.environ, "RESPONSES_DATA_DIR": str(folder)})
    os.environ["RESPONSES_SERVE_COMMAND"] = redacted_command(argv)
    if options.demo_tools:
        os.environ["RESPONSES_DEMO_TOOLS"] = "1"
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    set_server_timeout()
    postgres = None if _has_own_database() else Postgres(folder, supervisor.settings_for(options.web))
    try:
        if problem := authorities_problem():
            raise CannotStart(problem)
        downloads = _choose(options, folder, progress)
        has_runner = _choose_sandbox(folder)
        for sentence in check_settings():
            progress.line(f"WARNING: {sentence}")
        if options.is_supervised:
            opening.download_all(downloads, progress)
        with _sandbox(folder, progress, has_runner), archiver.started():
            _serve_metrics(options)
            if options.is_supervised:
                code = supervisor.serve(options, folder, postgres, progress)
            else:
                code = _serve(options, folder, postgres, progress, downloads)
    except (CannotStart, CannotServe, PostgresError, model_specs.InvalidModelSpec, ports.CannotListen) as error:
        progress.line(f"serve: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        if postgres is not None:
            postgres.stop()
    progress.line("Stopped.")
    return code


def _has_own_database() -> bool:
    """Return True for a Postgres of the operator. A secret may be a file (project/env.py)."""
    return bool(os.environ.get("DATABASE_URL") or os.environ.get("DATABASE_URL_FILE"))


def _read_models_file() -> None:
    """Replace RESPONSES_MODELS_FILE by the variable that all processes of the server read. Raises CannotStart."""
    try:
        os.environ["RESPONSES_MODELS"] = read_variable("RESPONSES_MODELS")
    except ImproperlyConfigured as error:
        raise CannotStart(str(error)) from None
    os.environ.pop("RESPONSES_MODELS_FILE", None)


def _read_engine_key() -> str:
    try:
        return check_token("RESPONSES_ENGINE_KEY", read_variable("RESPONSES_ENGINE_KEY"))
    except ImproperlyConfigured as error:
        raise CannotStart(str(error)) from None


def _choose(options: Options, folder: Path, progress: Progress) -> dict[str, Download]:
    """Set RESPONSES_MODELS unless the operator has, check the models, and return the downloads. Raises CannotServe."""
    _read_models_file()
    if options.models or options.engines or not os.environ.get("RESPONSES_MODELS"):
        if not (options.models or options.engines or is_bin_serve()) and _has_own_database():
            raise CannotStart(NO_MODELS)
        engine = model_specs.one_engine(model_specs.with_key(options.engines, _read_engine_key()))
        models = model_specs.models_setting(options.models, engine, lambda name: _demo(name, folder, progress))
        os.environ["RESPONSES_MODELS"] = models
    model_specs.check_tokenizers(os.environ["RESPONSES_MODELS"])
    os.environ["RESPONSES_MODELS"] = model_specs.with_parsers(os.environ["RESPONSES_MODELS"], options.parsers)
    os.environ["RESPONSES_MODELS"] = model_specs.with_adapters(os.environ["RESPONSES_MODELS"], options.adapters)
    os.environ["RESPONSES_MODELS"] = engine_options.with_options(
        os.environ["RESPONSES_MODELS"], options.engine_options, progress
    )
    if options.fit:
        model_specs.check_fit(os.environ["RESPONSES_MODELS"])
    prepared = prepare_models(os.environ["RESPONSES_MODELS"], progress, options.fit, install.has_gpu)
    os.environ["RESPONSES_MODELS"] = prepared.setting
    if prepared.downloads:
        engine_options.check(options.engine_options, prepared.setting, prepared.downloads, progress)
        return prepared.downloads
    # The hub's library reads the variable once; an unreachable hub costs minutes.
    os.environ.setdefault("HF_HUB_OFFLINE", "1" if model_specs.on_disk(os.environ["RESPONSES_MODELS"]) else "0")
    return {}


def _choose_sandbox(folder: Path) -> bool:
    """Return True for a runner of the operator; else set the variables of the server's runners, before the settings are read."""
    if os.environ.get("RESPONSES_SANDBOX_URL") or os.environ.get("RESPONSES_SANDBOX_URL_FILE"):
        return True
    os.environ["RESPONSES_SANDBOX_URL"] = sandbox_starter.socket_url(folder)
    os.environ["RESPONSES_SANDBOX_READER_URL"] = sandbox_starter.socket_url(folder, sandbox_starter.READER_SOCKET)
    return False


@contextmanager
def _sandbox(folder: Path, progress: Progress, has_runner: bool) -> Iterator[None]:
    """Have a runner of the sandbox start when needed, unless the operator has one. Raises CannotStart."""
    from responses_app.tools import sandbox_access

    setting = sandbox_access.code_interpreter()
    if setting == "on" and (problem := sandbox_access.sandbox_problem()):
        raise CannotStart(f"RESPONSES_CODE_INTERPRETER is on, but the sandbox does not work. {problem}")
    if has_runner:
        # The runner may start later.
        if setting != "off" and (problem := sandbox_access.missing_socket()):
            progress.line(f"WARNING: {problem}")
        yield
        return
    options = ["--options", sandbox_access.runner_options().to_json()]
    bare = ["--without-packages", *options]
    has_packages = setting != "off" and sandbox_access.has_packages()
    with (
        package_installer.installing(folder / packages.FOLDER, is_enabled=has_packages),
        sandbox_starter.started(folder, options if has_packages else bare),
        sandbox_starter.started(folder, bare, sandbox_starter.READER_SOCKET),
    ):
        yield


def _serve_metrics(options: Options) -> None:
    """Begin with empty counters, and serve the metrics if they have a separate port. Raises CannotStart."""
    from django.conf import settings

    slots.clear(settings.RESPONSES_METRICS_DIR)
    port, host = settings.RESPONSES_METRICS_PORT, settings.RESPONSES_METRICS_HOST
    if not port:
        return
    if not host.strip():
        raise CannotStart(f"RESPONSES_METRICS_HOST: {ports.EMPTY_HOST}")
    if port == options.port and ports.reachable(host) == ports.reachable(options.host):
        raise CannotStart(f"RESPONSES_METRICS_PORT is {port}, the port of the server: choose another port")
    from responses_app.observability import prometheus

    try:
        prometheus.serve(host, port, settings.RESPONSES_METRICS_DIR)
    # A UnicodeError is that of a name with an empty or a long part.
    except (OSError, UnicodeError) as error:
        is_taken = isinstance(error, OSError) and error.errno in PORT_ERRORS
        other = "choose another RESPONSES_METRICS_PORT" if is_taken else "correct RESPONSES_METRICS_HOST"
        raise CannotStart(f"the metrics cannot be served on {host}:{port}: {error}; {other}") from error


def _serve(
    options: Options, folder: Path, postgres: Postgres | None, progress: Progress, downloads: dict[str, Download]
) -> int:
    loop = startup.reactor()
    if postgres is not None:
        with progress.step("Starting Postgres"):
            postgres.start()
    return _work(options, folder, loop, postgres, progress, downloads)


def _work(
    options: Options,
    folder: Path,
    loop: asyncio.AbstractEventLoop,
    postgres: Postgres | None,
    progress: Progress,
    downloads: dict[str, Download],
) -> int:
    key = prepare(folder, progress)

    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured

    from responses_app.observability.start import start_observing
    from responses_app.runs import manager
    from responses_app.server.processes import lifecycle

    try:
        delay = settings.RESPONSES_DRAIN_DELAY
        life = lifecycle.ServerLifecycle(loop, manager.current(), options.drain, postgres, delay)
    except (ImproperlyConfigured, OSError) as error:
        raise CannotStart(str(error)) from error
    log = folder / "logs" / "engine.log"
    try:
        start_observing(manager.current().served)
        if downloads:
            opening.hold(manager.current(), downloads)
        elif not _start_engines(life, log, progress):
            return 130
        from project.asgi import application, gate, limits
        from responses_app.server.http.server import tcp
        from responses_app.tools import sandbox_access

        # A sign-in link is made only for a terminal.
        note = sandbox_access.packages_note()
        shown = (key, sign_in_link()) if progress.live else ("", "")
        text = banner(options, served(), *shown, note)
        ready = partial(progress.line, text)
        if downloads:
            progress.line(f"The models are downloaded while the server answers; {options.address}/models shows the progress.")
            ready = partial(life.open, partial(_open_models, life, downloads, log, progress, text))
        if failure := life.listen(application, tcp(options.host, options.port), ready, gate, limits):
            raise ports.CannotListen(failure)
        return life.code
    finally:
        progress.line("Stopping ...")
        life.close()
        events.close()
        close_connections()


def _start_engines(life: ServerLifecycle, log: Path, progress: Progress) -> bool:
    """Start the engines before the server listens. Return False after a signal. Raises CannotStart."""
    from responses_app.runs import manager

    with progress.step(_starting()):
        started = startup.start(life, log)
    for line in model_lines(manager.current().served.values()) if started else ():
        progress.line(line)
    return started


async def _open_models(
    life: ServerLifecycle, downloads: dict[str, Download], log: Path, progress: Progress, banner_text: str
) -> None:
    """Download the models and start the engines while the server listens; a failure stops the server."""
    from responses_app.runs import manager

    hub = manager.current()

    async def start() -> None:
        with progress.step(_starting()):
            await startup.start_while_serving(hub, log)

    try:
        await opening.open_models(hub, downloads, start, progress)
    except (CannotServe, CannotStart, EngineUnavailable) as error:
        progress.line(f"serve: {error}")
        life.fail()
    else:
        progress.line(banner_text)


def _starting() -> str:
    return f"Starting the engine for {', '.join(served())}"


def _demo(name: str, folder: Path, progress: Progress) -> Path:
    from responses_app.demo.build import build

    with progress.step(f"Preparing {name}"):
        try:
            return build(name, folder / "models")
        except OSError as error:
            raise CannotStart(f"{name} cannot be written to {folder / 'models'}: {error.strerror or error}") from error


if __name__ == "__main__":
    startup.exit_now(main(sys.argv[1:]))
if __name__ == imports.SPAWNED:
    prepare_spawned_process()
