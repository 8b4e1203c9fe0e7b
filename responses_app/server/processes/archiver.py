"""Archiver process: archives the logs of ended responses below the priority of the streams. The server starts and restarts it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from django.db import DatabaseError, connection

from responses_app.installation.data_dir import ROOT
from responses_app.server.supervision.child import PARENT
from responses_app.server.supervision.process_tree import describe_exit, die_with_parent

logger = logging.getLogger("responses.archive")

# A server that stops soon needs no archiver: no log is due before, and those of earlier runs can wait.
START_AFTER_S: Final = 20.0
RESTART_PAUSES_S: Final = (1.0, 5.0, 30.0)
# A process that ran for so long, more than a start takes, is started again after the first pause.
HEALTHY_S: Final = 20.0
STOP_LIMIT_S: Final = 5.0
NICENESS: Final = 10
# Pauses between two looks for logs that are due, and between two attempts to get the lock or the database.
LOOK_EVERY_S: Final = 1.0
TRY_EVERY_S: Final = 1.0
# Attempts in a row without a database before a warning is logged: a database that restarts is nothing to report.
QUIET_ATTEMPTS: Final = 15


@contextmanager
def started() -> Iterator[None]:
    """Run an archiver process from START_AFTER_S seconds on, and restart it when it ends. It ends with the context.

    Without RESPONSES_SEAL_AFTER no process runs.
    """
    from django.conf import settings

    if settings.RESPONSES_SEAL_AFTER is None:
        yield
        return
    starter = _ArchiverStarter()
    thread = threading.Thread(target=starter.run, name="archiver", daemon=True)
    thread.start()
    try:
        yield
    finally:
        starter.stop()
        thread.join(STOP_LIMIT_S)


class _ArchiverStarter:
    """Thread that starts the process and waits for its end."""

    def __init__(self) -> None:
        self._stopped, self._changed = threading.Event(), threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        """Start the process again and again until stopped."""
        failures, pause_s = 0, START_AFTER_S
        while not self._stopped.wait(pause_s):
            with self._changed:
                if self._stopped.is_set():
                    return
                self._process, began = _try_start(), time.monotonic()
            end = "cannot be started" if self._process is None else describe_exit(self._process.wait())
            if self._stopped.is_set():
                return
            failures = 0 if time.monotonic() - began > HEALTHY_S else failures
            pause_s = RESTART_PAUSES_S[min(failures, len(RESTART_PAUSES_S) - 1)]
            failures += 1
            logger.error("the archiver %s; it is started again in %.0f s", end, pause_s)

    def stop(self) -> None:
        """End the process."""
        with self._changed:
            self._stopped.set()
            if self._process is not None:
                self._process.kill()


def _try_start() -> subprocess.Popen[bytes] | None:
    """Start the process. Return None if the machine has no memory or no descriptors for it."""
    try:
        return _start()
    except OSError as error:
        logger.error("a process for the archiver: %s", error)
        return None


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", __name__],
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT), PARENT: str(os.getpid())},
        # Ctrl-C must reach the server only.
        start_new_session=True,
    )


def main() -> None:
    """Archive until killed."""
    die_with_parent(int(os.environ.pop(PARENT)))
    # Imported by the process alone.
    import django

    from project.pool import set_server_timeout

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    set_server_timeout()
    django.setup()
    # After the imports, which would take a minute beside busy processes.
    os.nice(NICENESS)
    attempts = 0
    while True:
        try:
            archive_with_lock(is_first=attempts == 0)
            attempts = 0
        except DatabaseError as error:
            attempts += 1
            if attempts == QUIET_ATTEMPTS:
                logger.warning("logs are not archived: %s", error)
            with suppress(DatabaseError):
                connection.close()
        time.sleep(TRY_EVERY_S)


def archive_with_lock(*, is_first: bool) -> None:
    """Archive due logs for ever, unless another process does. The first attempt logs the start. Raises DatabaseError."""
    from responses_app.store.cluster.clock import database_time
    from responses_app.store.log.archiver import KEEPALIVE_SQL, Archiver, archiver_lock

    archiver = Archiver()
    with archiver_lock() as has_lock:
        if not has_lock:
            return
        with connection.cursor() as cursor:
            cursor.execute(KEEPALIVE_SQL)
        if is_first:
            logger.info("this host archives")
        while True:
            for _ in archiver.archive_due(database_time()):
                pass
            time.sleep(LOOK_EVERY_S)


if __name__ == "__main__":
    main()
