"""Embedded Postgres: a child process with a Unix socket, in the data folder.

Started by root, Postgres runs as another user (server.postgres.account), which may lack access to the data folder. Root
opens the folders of the cluster and the socket and passes the descriptors. No mode of a folder changes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType, TracebackType

from responses_app.installation.data_dir import make_folder, open_log
from responses_app.installation.database_url import PORT, ROLE, SOCKET_NAME, default_url, socket_dir
from responses_app.server.postgres.account import Account, account_for, run_as
from responses_app.server.postgres.init import (
    CannotMake,
    environment,
    handed,
    make_cluster,
    open_folder,
    reject_hosts,
    room_problem,
)
from responses_app.server.postgres.programs import NoPrograms, program_folder
from responses_app.server.postgres.roles import make_role

START_LIMIT = 60.0
# Seconds that a killed Postgres on the same cluster may take to end: on a busy machine the kernel ends processes late.
PREVIOUS_LIMIT = 30.0
POLL = 0.02
# Shutdown signals of the postmaster in order, each with a limit in seconds: "fast" ends the sessions and
# writes a checkpoint, "immediate" leaves the recovery to the next start.
STOP = ((signal.SIGINT, 10.0), (signal.SIGQUIT, 3.0), (signal.SIGKILL, 3.0))
LOG_LIMIT = 10_000_000

# Settings for an append-only log that is read by key, on a shared machine. The store decides per transaction whether a
# commit waits for the disk; fsync stays on.
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "shared_buffers": "128MB",
    "max_connections": "100",
    "wal_compression": "on",
    "max_wal_size": "2GB",
    # An asynchronous commit reaches the disk within three times this delay.
    "wal_writer_delay": "10ms",
    "checkpoint_timeout": "15min",
    "autovacuum_max_workers": "1",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
    "log_min_messages": "warning",
    # Statements contain data of clients.
    "log_min_error_statement": "panic",
    # A disconnect is noticed during a long query.
    "client_connection_check_interval": "10s",
}


class PostgresError(Exception):
    """Failure of Postgres to start; the message ends with Postgres's output."""


class Postgres:
    """Embedded Postgres of a data folder, also a context manager. `settings` override SETTINGS."""

    def __init__(
        self, data_dir: Path, settings: Mapping[str, str] = MappingProxyType({}), *, may_create_databases: bool = False
    ) -> None:
        self.may_create_databases = may_create_databases
        self.data_dir = data_dir.resolve()
        self.settings = {**SETTINGS, **settings}
        self.cluster = self.data_dir / "postgres"
        self.sockets = socket_dir(self.data_dir)
        self.log = self.data_dir / "logs" / "postgres.log"
        self.url = default_url(self.data_dir)
        self._server: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id of the postmaster; 0 if stopped."""
        return self._server.pid if self.running and self._server else 0

    @property
    def running(self) -> bool:
        """Return True while the postmaster runs."""
        return self._server is not None and self._server.poll() is None

    def start(self) -> None:
        """Make the cluster if missing, and start Postgres until connections are accepted. Raises PostgresError."""
        try:
            self._start()
        except (CannotMake, NoPrograms) as error:
            raise PostgresError(str(error)) from error
        except OSError as error:
            raise PostgresError(f"Postgres cannot be started: {error}") from error
        self._wait()
        self._make_role()

    def stop(self) -> None:
        """Stop Postgres in bounded time. Does nothing if stopped."""
        for number, limit in STOP:
            if not self.running or self._server is None:
                return
            self._server.send_signal(number)
            try:
                self._server.wait(limit)
            except subprocess.TimeoutExpired:
                continue

    def __enter__(self) -> Postgres:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def _has_previous(self) -> bool:
        """Wait until the processes of a killed Postgres have ended; return True if some are left at the limit.

        Postgres refuses to start while a session of the killed one uses the shared memory.
        """
        deadline = time.monotonic() + PREVIOUS_LIMIT
        while is_used := any(server_pids(self.cluster)):
            if time.monotonic() > deadline:
                break
            time.sleep(POLL)
        return is_used

    def _start(self) -> None:
        make_folder(self.data_dir)
        account = account_for(self.cluster)
        programs = program_folder(account)
        make_cluster(self.cluster, programs, account, is_durable=self.settings.get("fsync") != "off")
        has_previous = self._has_previous()
        self._turn_log()
        cluster, sockets = open_folder(self.cluster), self._open_sockets(account)
        try:
            if not has_previous:
                remove_lock_files(cluster, sockets)
            reject_hosts(cluster, account)
            self._server = self._spawn(programs, account, cluster, sockets)
        finally:
            os.close(cluster)
            os.close(sockets)

    def _turn_log(self) -> None:
        if self.log.exists() and self.log.stat().st_size > LOG_LIMIT:
            self.log.replace(self.log.with_suffix(".log.1"))

    def _spawn(self, programs: Path, account: Account | None, cluster: int, sockets: int) -> subprocess.Popen[bytes]:
        folders = (handed(cluster), handed(sockets)) if account else (str(self.cluster), str(self.sockets))
        settings = [part for name, value in self.settings.items() for part in ("-c", f"{name}={value}")]
        log = open_log(self.log, os.O_APPEND)
        try:
            return subprocess.Popen(
                [str(programs / "postgres"), "-D", folders[0], "-k", folders[1], *settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # In a session of its own, so that Ctrl-C in a terminal does not end Postgres before running responses.
                start_new_session=True,
                cwd="/",
                env=environment(),
                pass_fds=(cluster, sockets) if account else (),
                **run_as(account),
            )
        finally:
            os.close(log)

    def _open_sockets(self, account: Account | None) -> int:
        """Make and open the socket's folder. Below /tmp, check the owner: another owner could listen in this place."""
        self.sockets.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = open_folder(self.sockets)
        mine = {os.geteuid(), account.uid if account else os.geteuid()}
        if not self.sockets.is_relative_to(self.data_dir) and os.fstat(folder).st_uid not in mine:
            os.close(folder)
            raise PostgresError(f"{self.sockets} belongs to another user")
        os.fchmod(folder, 0o700)
        if account:
            account.chown(folder)
        return folder

    def _make_role(self) -> None:
        import psycopg

        try:
            make_role(self.sockets, PORT, may_create_databases=self.may_create_databases)
        except psycopg.Error as error:
            self.stop()
            raise PostgresError(f"the role {ROLE} cannot be made in the database: {error}") from error

    def _wait(self) -> None:
        deadline = time.monotonic() + START_LIMIT
        while not self._ready():
            if not self.running or time.monotonic() > deadline:
                self.stop()
                tail = self._tail()
                problem = room_problem(tail.rstrip().rpartition("FATAL")[2], self.data_dir)
                reason = "Postgres did not start" if problem is None else problem
                raise PostgresError(f"{reason}; the end of {self.log}:\n{tail}")
            time.sleep(POLL)

    def _ready(self) -> bool:
        try:
            lines = (self.cluster / "postmaster.pid").read_text().split("\n")
        except OSError:
            return False
        # Line 1 is the pid, which differs in a file left by a crash; line 8 is the state.
        return len(lines) > 7 and lines[0] == str(self.pid) and lines[7].strip() == "ready"

    def _tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])


def remove_lock_files(cluster: int, sockets: int) -> None:
    """Remove the lock files of a killed Postgres from the folders, which are given as descriptors.

    The number in a lock file may belong to another process, in a restarted container often, or to a dead process without a
    parent that reads its exit code. Postgres would mistake this process for itself. The lock of the data folder
    (local.data_dir) excludes a concurrent start.
    """
    for folder, name in ((cluster, "postmaster.pid"), (sockets, f"{SOCKET_NAME}.lock")):
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)


def server_pids(cluster: Path) -> Iterator[int]:
    """Iterate over the process ids of a Postgres on this cluster: processes with the cluster as working directory."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):
                if os.readlink(f"/proc/{entry}/cwd") == str(cluster):
                    yield int(entry)
