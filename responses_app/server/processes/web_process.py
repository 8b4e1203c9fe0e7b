"""Web process of a supervisor: inherits the listening socket and runs Daphne."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from responses_app.server.bootstrap import ports
from responses_app.server.bootstrap.errors import CannotStart
from responses_app.server.cli.banner import model_lines
from responses_app.server.processes import startup
from responses_app.server.supervision.child import PARENT, notify_ready
from responses_app.server.supervision.process_tree import die_with_parent
from responses_app.utils.imports import SAFE_PATH


def command(number: int, listening: int, drain: float, log: Path) -> list[str]:
    """Return the command line of a web process."""
    what = ["--number", str(number), "--listening", str(listening), "--drain", str(drain), "--log", str(log)]
    return [sys.executable, *SAFE_PATH, "-m", __name__, *what]


def main(argv: Sequence[str]) -> int:
    """Serve until stopped. Return the exit code."""
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.signal(signal.SIGINT, _leave)  # Until the loop handles signals; nothing needs cleaning up yet.
    parser = argparse.ArgumentParser()
    for word in ("--number", "--listening", "--ready"):
        parser.add_argument(word, type=int, required=True)
    parser.add_argument("--drain", type=float, required=True)
    parser.add_argument("--log", type=Path, required=True)
    options = parser.parse_args(argv)
    if parent := os.environ.pop(PARENT, ""):
        die_with_parent(int(parent))
    for descriptor in (options.listening, options.ready):
        os.set_inheritable(descriptor, False)
    try:
        return _serve(options)
    except (CannotStart, ports.CannotListen) as error:
        sys.stderr.write(f"web process {options.number}: {error}\n")
        return 1


def _serve(options: argparse.Namespace) -> int:
    loop = startup.reactor()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    import django

    from project.pool import set_server_timeout

    set_server_timeout()
    django.setup(set_prefix=False)
    from django.core.exceptions import ImproperlyConfigured

    from responses_app.observability import events
    from responses_app.observability.start import start_observing
    from responses_app.runs import manager
    from responses_app.server.bootstrap.database import close_connections
    from responses_app.server.http.server import BACKLOG, adopted
    from responses_app.server.processes.lifecycle import ServerLifecycle

    try:
        life = ServerLifecycle(loop, manager.current(), options.drain)
    except (ImproperlyConfigured, OSError) as error:
        raise CannotStart(str(error)) from error
    try:
        start_observing(manager.current().served)
        if not startup.start(life, options.log):
            return 130
        if options.number == 1:  # The other web processes have the same models.
            sys.stderr.writelines(f"{line}\n" for line in model_lines(manager.current().served.values()))
        from project.asgi import application, gate, limits

        ports.start_listening(options.listening, BACKLOG)
        if failure := life.listen(application, adopted(options.listening), lambda: notify_ready(options.ready), gate, limits):
            raise CannotStart(failure)
        return life.code
    finally:
        life.close()
        events.close()
        close_connections()


def _leave(_number: int, _frame: object) -> None:
    os._exit(130)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    logging.shutdown()
    # Skip the exit handlers of libraries, which are unnecessary here and may print errors.
    os._exit(code)
