"""Programs of Postgres for dumps: from the embedded Postgres or the system, by version."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from psycopg.conninfo import make_conninfo

from responses_app.server.backup.manifest import BackupError
from responses_app.server.postgres.programs import NoPrograms, program_folder
from responses_app.store.db import session_parameters

VERSION_LIMIT_S: Final = 10.0
MAX_MESSAGE: Final = 1_000


def find_program(name: str, server_major: int) -> Path:
    """Return the program of the lowest version that is not older than the server. Raises BackupError."""
    versions = {major: path for path in reversed([*_candidates(name)]) if (major := _major(path)) >= server_major}
    if not versions:
        raise BackupError(f"There is no {name} of version {server_major} or later. Install the client programs of Postgres.")
    return versions[min(versions)]


def connection_arguments() -> tuple[str, dict[str, str]]:
    """Return the connection string of DATABASE_URL without the password, and the environment with the password."""
    parameters = dict(session_parameters())
    password = parameters.pop("password", None)
    environ = {**os.environ, **({"PGPASSWORD": str(password)} if password else {})}
    return make_conninfo(**parameters), environ


def run(arguments: Sequence[str | Path], environ: dict[str, str]) -> str:
    """Run a program and return the output. Raises BackupError with the end of the messages."""
    done = subprocess.run([str(one) for one in arguments], env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        # The limit of `ulimit -f` ends a program without a message.
        is_too_large = done.returncode == -signal.SIGXFSZ
        reason = os.strerror(errno.EFBIG) if is_too_large else f"it ended with status {done.returncode}, without a message"
        raise BackupError(failure(str(arguments[0]), done.stderr or reason))
    return done.stdout


def failure(program: str, messages: str) -> str:
    """Return a sentence about a program that failed."""
    return f"{Path(program).name} failed: {messages.strip()[-MAX_MESSAGE:]}"


def _candidates(name: str) -> Iterator[Path]:
    with suppress(NoPrograms):
        yield program_folder(None) / name
    if path := shutil.which(name):
        yield Path(path)


def _major(path: Path) -> int:
    """Return the major version of a program; 0 for a program that does not run."""
    try:
        output = subprocess.run([path, "--version"], capture_output=True, text=True, check=True, timeout=VERSION_LIMIT_S).stdout
    except (OSError, subprocess.SubprocessError):
        return 0
    match = re.search(r"\) (\d+)", output)
    return int(match[1]) if match else 0
