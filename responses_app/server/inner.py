"""The server process: Postgres, tables, a key, engines, and then Daphne, all on one uvloop."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from responses_app.server import data, lineup, port
from responses_app.server.args import Options, parse
from responses_app.server.aside import aside, tail, terminal
from responses_app.server.postgres import Postgres, PostgresError
from responses_app.server.process import die_with_parent
from responses_app.server.progress import Progress

if TYPE_CHECKING:
    from responses_app.server.life import Life

EXIT_LIMIT = 3.0
# Events are made and dropped by the thousand, hardly any in a cycle: Python's own 700 would have the collector run all the time.
GC_THRESHOLDS = (20_000, 20, 50)
CONNECT_LIMIT = 5
# What vLLM says at INFO, every ten seconds too, is in our metrics and in our own log.
QUIET = {"VLLM_LOGGING_LEVEL": "WARNING", "TOKENIZERS_PARALLELISM": "false"}


class CannotStart(Exception):
    """The database or an engine is not there; the message says why."""


def main(argv: Sequence[str]) -> int:
    """Serve to the end; the exit code."""
    outer = os.environ.pop("RESPONSES_OUTER", "")
    if outer:
        die_with_parent(int(outer))
    options, progress, folder = parse(argv), Progress(terminal()), data.data_dir()
    os.environ.update({**QUIET, **os.environ, "RESPONSES_DATA_DIR": str(folder)})
    # A secret may be mounted as a file (project/env.py).
    given = os.environ.get("DATABASE_URL") or os.environ.get("DATABASE_URL_FILE")
    postgres = None if given else Postgres(folder)
    try:
        _choose(options, folder, progress)
        loop = _reactor()
        if postgres is not None:
            with progress.step("Starting Postgres"):
                postgres.start()
        code = _serve(options, folder, loop, postgres, progress)
    except (CannotStart, PostgresError, lineup.BadModel, port.CannotListen) as error:
        progress.say(f"serve: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        if postgres is not None:
            postgres.stop()
    progress.say("Stopped.")
    return code


def _choose(options: Options, folder: Path, progress: Progress) -> None:
    """Set RESPONSES_MODELS, unless its owner has and asks for nothing else, and whether the model hub may be asked."""
    if options.models or options.engine or not os.environ.get("RESPONSES_MODELS"):
        models = lineup.lineup(options.models, options.engine, lambda name: _demo(name, folder, progress))
        os.environ["RESPONSES_MODELS"] = models
    # The hub's library reads this once, and asking a hub that cannot be reached costs minutes.
    os.environ.setdefault("HF_HUB_OFFLINE", "1" if lineup.on_disk(os.environ["RESPONSES_MODELS"]) else "0")


def _reactor() -> asyncio.AbstractEventLoop:
    """Install Twisted's asyncio reactor on a uvloop: Daphne takes whatever reactor it finds, or else a slower loop."""
    import uvloop
    from twisted.internet import asyncioreactor

    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    asyncioreactor.install(loop)
    return loop


def _serve(
    options: Options, folder: Path, loop: asyncio.AbstractEventLoop, postgres: Postgres | None, progress: Progress
) -> int:
    key = _prepare(folder, progress)

    from django.core.exceptions import ImproperlyConfigured
    from django.db import connections

    from responses_app.runs import hub
    from responses_app.server.life import Life

    try:
        life = Life(loop, hub.current(), options.drain, postgres)
    except (ImproperlyConfigured, OSError) as error:
        raise CannotStart(str(error)) from error
    try:
        return _live(life, options, key, folder, progress)
    finally:
        progress.say("Stopping ...")
        life.close()
        for connection in connections.all(initialized_only=True):
            connection.close()
            # Its threads would try to reach a Postgres that is gone. Only the wrapper for Postgres has it.
            connection.close_pool()  # type: ignore[attr-defined]


def _live(life: Life, options: Options, key: str, folder: Path, progress: Progress) -> int:
    names = [entry.partition("=")[0] for entry in os.environ["RESPONSES_MODELS"].split()]
    with progress.step(f"Starting the engine for {', '.join(names)}"):
        started = _start(life, folder / "logs" / "engine.log")
    if not started:
        return 130
    from project.asgi import application

    failure = life.listen(application, options.host, options.port, lambda: progress.say(banner(options, key, names)))
    if failure:
        raise port.CannotListen(failure)
    return life.code


def _start(life: Life, log: Path) -> bool:
    with aside(log):
        try:
            return life.start() and _settle()
        except Exception as error:
            # Anything at all: a model brings its own code and its own ways to fail.
            traceback.print_exc()
            reason = f"the engine did not start: {error}"
    raise CannotStart(f"{reason}\nThe end of {log}:\n{tail(log)}")


def _settle() -> bool:
    """What has been made up to here, a million objects of vLLM's, stays: the garbage collector need not look at it again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    return True


def _demo(name: str, folder: Path, progress: Progress) -> Path:
    from responses_app.demo.build import build

    with progress.step(f"Preparing {name}"):
        return build(name, folder / "models")


def _prepare(folder: Path, progress: Progress) -> str:
    """Django, its tables and a key to begin with."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    with progress.step("Preparing the database"):
        import django
        from django.core.management import call_command
        from django.db import OperationalError

        django.setup(set_prefix=False)
        from responses_app.server.key import first_key

        try:
            _reach()
            call_command("migrate", verbosity=0, interactive=False)
            return first_key(folder)
        except OperationalError as error:
            raise CannotStart(f"the database does not answer: {error}".rstrip()) from error


def _reach() -> None:
    """Connect once outside the pool, which would go on trying for its own time and then not say why."""
    from django.db import connection

    parameters = {**connection.get_connection_params(), "connect_timeout": CONNECT_LIMIT}
    parameters.pop("pool", None)
    with connection.wrap_database_errors:
        connection.Database.connect(**parameters).close()  # type: ignore[attr-defined]


def banner(options: Options, key: str, names: Sequence[str]) -> str:
    """What to do now, to be copied."""
    body = f'{{"model": "{names[0]}", "input": "Hello!"}}'
    return f"""
Ready.

  base URL  {options.address}/v1
  API key   {key}
  models    {", ".join(names)}
  admin     {options.address}/admin/ (make an account first: .venv/bin/python manage.py createsuperuser)

  curl {options.address}/v1/responses -H "Authorization: Bearer {key}" \\
    -H "Content-Type: application/json" -d '{body}'

Ctrl-C stops it.
"""


def _leave(code: int) -> None:
    """Exit, even if a thread of some library does not want to end."""
    logging.shutdown()
    timer = threading.Timer(EXIT_LIMIT, os._exit, (code,))
    timer.daemon = True
    timer.start()
    sys.exit(code)


if __name__ == "__main__":
    _leave(main(sys.argv[1:]))
