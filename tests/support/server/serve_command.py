"""Whole `bin/serve` in a separate folder, started and used as by its owner."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from itertools import cycle, islice
from pathlib import Path
from typing import Any, ClassVar, Self

import httpx2
import psycopg

from responses_app.installation.data_dir import ROOT
from responses_app.installation.database_url import superuser_url
from tests.support import plain_http
from tests.support.suite import data_template
from tests.support.waiting import wait_until

# Five seconds on an idle machine; fifty were seen on a busy one.
START_LIMIT = 300.0
END_LIMIT = 30.0
# The last line of the banner.
READY = "Ctrl-C stops it."


# Ports below those of outgoing connections, which could take a port before its server listens: 2,000 for each process of xdist.
_PORTS = cycle(range(2000))
_FIRST_PORT = 12_000 + 2_000 * (int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 10)


def free_port() -> int:
    """Return a port on which nothing listens, and which this process has not returned for long."""
    for number in islice(_PORTS, 2000):
        port = _FIRST_PORT + (os.getpid() + number) % 2000
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError(f"all ports from {_FIRST_PORT} on are taken")


class Server:
    """One `bin/serve`, or another `program`; `output` is the text that it has printed. `before` are words before the command.

    A new data folder begins with a copy of the migrated database.
    """

    begins_migrated: ClassVar[bool] = True

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        root: Path = ROOT,
        before: Sequence[str] = (),
        program: Sequence[str] = (),
        **environ: str,
    ) -> None:
        if self.begins_migrated and root == ROOT:
            data_template.copy_to(folder)
        self.root = root
        self.port = free_port()
        self.folder = folder
        self.given_key = environ.get("RESPONSES_API_KEY")
        # An installation occupies the processors of other tests.
        environ = {"RESPONSES_SANDBOX_PACKAGES": "off", "RESPONSES_DRAIN_DELAY": "0", **environ}
        self.log = folder.with_suffix(f".{self.port}.log")
        inherited = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "RESPONSES_API_KEY")}
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [*before, *(program or [str(root / "bin" / "serve")]), "--port", str(self.port), *arguments],
                env={**inherited, "RESPONSES_DATA_DIR": str(folder), **environ},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self.log.read_text()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def key(self) -> str:
        return self.given_key or (self.folder / "api_key").read_text().strip()

    def ready(self, limit_s: float = START_LIMIT) -> Server:
        """Wait until the server is ready, at most `limit_s` seconds."""

        def is_ready() -> bool:
            assert self.process.poll() is None, self.output
            return READY in self.output

        wait_until(is_ready, limit_s=limit_s, poll_s=0.1, explain=lambda: self.output)
        return self

    def ask(self, **more: Any) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.key}"}
        body = {"model": "tape", "input": "Hi", **more}
        return plain_http.post(f"{self.url}/v1/responses", json=body, headers=headers, timeout=180)

    def manage(self, *arguments: str, **environ: str) -> str:
        """Run `manage.py` beside the running server and return the output."""
        done = self.run_manage(self.folder, *arguments, root=self.root, **environ)
        done.check_returncode()
        return done.stdout.strip()

    @staticmethod
    def run_manage(folder: Path, *arguments: str, root: Path = ROOT, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run `manage.py` with a data folder, whether a server runs there or not."""
        inherited = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        command = [str(root / ".venv" / "bin" / "python"), str(root / "manage.py"), *arguments]
        environ = {**inherited, "RESPONSES_DATA_DIR": str(folder), **environ}
        return subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=60)

    def sql(self, statement: str) -> None:
        """Execute a statement in the embedded Postgres as the superuser."""
        with psycopg.connect(superuser_url(self.folder), autocommit=True) as connection:
            connection.execute(statement)

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(END_LIMIT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_problem: object) -> None:
        self.end()

    def end(self, limit_s: float = END_LIMIT) -> None:
        """End the server, whether the test has passed or failed."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(limit_s)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class EmptyServer(Server):
    """Server that makes its database: for tests of the first start."""

    begins_migrated = False
