"""One web process of a fleet: engines and database are there, the listening socket is handed down, the rest is Daphne."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from responses_app.server.bootstrap import startup
from responses_app.server.processes.child import PARENT, say_ready
from responses_app.server.processes.process_tree import die_with_parent

BACKLOG = 1024


def command(number: int, listening: int, drain: float, log: Path) -> list[str]:
    """The command line of this program."""
    what = ["--number", str(number), "--listening", str(listening), "--drain", str(drain), "--log", str(log)]
    return [sys.executable, "-m", __name__, *what]


def main(argv: Sequence[str]) -> int:
    """Serve to the end; the exit code."""
    signal.signal(signal.SIGINT, _leave)  # Until the loop hears it: nothing has been begun that would have to be ended.
    parser = argparse.ArgumentParser()
    for word in ("--number", "--listening", "--ready"):
        parser.add_argument(word, type=int, required=True)
    parser.add_argument("--drain", type=float, required=True)
    parser.add_argument("--log", type=Path, required=True)
    given = parser.parse_args(argv)
    if parent := os.environ.pop(PARENT, ""):
        die_with_parent(int(parent))
    for descriptor in (given.listening, given.ready):
        os.set_inheritable(descriptor, False)
    try:
        return _serve(given)
    except startup.CannotStart as error:
        sys.stderr.write(f"web process {given.number}: {error}\n")
        return 1


def _serve(given: argparse.Namespace) -> int:
    loop = startup.reactor()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    import django

    django.setup(set_prefix=False)
    from django.core.exceptions import ImproperlyConfigured

    from responses_app.runs import manager
    from responses_app.server.bootstrap.database import close_connections
    from responses_app.server.http.server import adopted
    from responses_app.server.processes.lifecycle import ServerLifecycle

    try:
        life = ServerLifecycle(loop, manager.current(), given.drain)
    except (ImproperlyConfigured, OSError) as error:
        raise startup.CannotStart(str(error)) from error
    try:
        if not startup.start(life, given.log):
            return 130
        from project.asgi import application, gate, limits

        _listen(given.listening)
        if failure := life.listen(application, adopted(given.listening), lambda: say_ready(given.ready), gate, limits):
            raise startup.CannotStart(failure)
        return life.code
    finally:
        life.close()
        close_connections()


def _listen(descriptor: int) -> None:
    """The first of us makes the socket listen: before that, connections are refused and do not wait for nobody."""
    with socket.socket(fileno=os.dup(descriptor)) as shared:
        shared.listen(BACKLOG)


def _leave(_number: int, _frame: object) -> None:
    os._exit(130)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    logging.shutdown()
    # What libraries do at the end of an interpreter is of use to nobody here, and some of them complain about it.
    os._exit(code)
