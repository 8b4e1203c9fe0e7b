"""The embedded Postgres: a plain child process on a Unix socket, in one folder, gone when we are.

Under root it runs as another user (server.account), who may not be able to reach the data folder: its cluster and the folder of
its socket are opened by us and handed to it. This works below any closed folder, and nobody's modes are changed.
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

from responses_app.local.data_dir import make_folder, open_log
from responses_app.local.database_url import PORT, ROLE, default_url, socket_dir
from responses_app.server.postgres.account import Account, account_for, run_as
from responses_app.server.postgres.init import CannotMake, environment, handed, make_cluster, open_folder, reject_hosts
from responses_app.server.postgres.programs import NoPrograms, program_folder
from responses_app.server.postgres.roles import make_role

START_LIMIT = 60.0
POLL = 0.02
# Shutdown modes of the postmaster, from polite to final, each with the seconds it is given: "fast" ends the sessions and
# writes a checkpoint, "immediate" leaves the recovery to the next start.
STOP = ((signal.SIGINT, 10.0), (signal.SIGQUIT, 3.0), (signal.SIGKILL, 3.0))
LOG_LIMIT = 10_000_000

# For a log that is appended to all the time and read by key, on a machine that has other things to do. What a commit
# waits for is decided by the store, per transaction; fsync stays on.
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "shared_buffers": "128MB",
    "max_connections": "100",
    "wal_compression": "on",
    "max_wal_size": "2GB",
    # A commit that does not wait for the disk is there within three times so long: what a crash can take back.
    "wal_writer_delay": "10ms",
    "checkpoint_timeout": "15min",
    "autovacuum_max_workers": "1",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
    "log_min_messages": "warning",
    # Statements hold what clients said.
    "log_min_error_statement": "panic",
    # A client that vanishes while we compute for it is noticed.
    "client_connection_check_interval": "10s",
}


class PostgresError(Exception):
    """Postgres did not start; the message ends with what it said."""


class Postgres:
    """`start`, then `url` answers; `stop` at the end. A context manager does both. `settings` win over ours."""

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
        """Of the postmaster; 0 if it does not run."""
        return self._server.pid if self.running and self._server else 0

    @property
    def running(self) -> bool:
        return self._server is not None and self._server.poll() is None

    def start(self) -> None:
        """Make the cluster at the first start, then run it until it accepts connections. Raises PostgresError."""
        try:
            self._start()
        except (CannotMake, NoPrograms) as error:
            raise PostgresError(str(error)) from error
        except OSError as error:
            raise PostgresError(f"Postgres cannot be started: {error}") from error
        self._wait()
        self._make_role()

    def stop(self) -> None:
        """End it, in bounded time. Does nothing if it does not run."""
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

    def _forget_dead(self) -> None:
        """Remove the mark that a killed one has left, if nobody works in the cluster: its number may be another's by now.

        In a container that was started again it often is, and Postgres would take that process for itself. The data folder is
        ours alone (server.data), so nobody begins to work there meanwhile.
        """
        if not any(server_pids(self.cluster)):
            (self.cluster / "postmaster.pid").unlink(missing_ok=True)

    def _start(self) -> None:
        make_folder(self.data_dir)
        account = account_for(self.cluster)
        programs = program_folder(account)
        make_cluster(self.cluster, programs, account, is_durable=self.settings.get("fsync") != "off")
        self._forget_dead()
        self._turn_log()
        cluster, sockets = open_folder(self.cluster), self._open_sockets(account)
        try:
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
                # A session of its own, or Ctrl-C in the terminal would end it before the runs that still write to it.
                start_new_session=True,
                cwd="/",
                env=environment(),
                pass_fds=(cluster, sockets) if account else (),
                **run_as(account),
            )
        finally:
            os.close(log)

    def _open_sockets(self, account: Account | None) -> int:
        """Make the folder for the socket. Below /tmp, see that nobody else made it: its owner could listen in our place."""
        self.sockets.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = open_folder(self.sockets)
        mine = {os.geteuid(), account.uid if account else os.geteuid()}
        if not self.sockets.is_relative_to(self.data_dir) and os.fstat(folder).st_uid not in mine:
            os.close(folder)
            raise PostgresError(f"{self.sockets} belongs to somebody else")
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
                raise PostgresError(f"Postgres did not start; the end of {self.log}:\n{self._tail()}")
            time.sleep(POLL)

    def _ready(self) -> bool:
        try:
            lines = (self.cluster / "postmaster.pid").read_text().split("\n")
        except OSError:
            return False
        # Line 8 is the state. The first is the pid: a file that a crash has left names another one.
        return len(lines) > 7 and lines[0] == str(self.pid) and lines[7].strip() == "ready"

    def _tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])


def server_pids(cluster: Path) -> Iterator[int]:
    """The live processes of a Postgres on that cluster: all of them work in its folder, and a dead one nowhere."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):
                if os.readlink(f"/proc/{entry}/cwd") == str(cluster):
                    yield int(entry)
