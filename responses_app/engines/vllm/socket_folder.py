"""Folder of the sockets of a vLLM engine. A killed engine leaves them behind, and the next start of any engine removes them."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

# Folder in which vLLM makes its sockets.
PATH_VARIABLE: Final = "VLLM_RPC_BASE_PATH"
PREFIX: Final = "verbatim-vllm-"
# A socket address holds 107 bytes; vLLM names its sockets by a UUID.
PATH_LIMIT: Final = 107 - 37


class SocketFolder:
    """Folder in the temporary folder, mode 0700. It is in use while a process holds its lock."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._lock = -1

    def make(self) -> None:
        """Make the folder, unless it exists or PATH_VARIABLE is set, and set PATH_VARIABLE. Remove folders of ended processes."""
        if self._path is None:
            if os.environ.get(PATH_VARIABLE):
                return
            _remove_left()
            self._path, self._lock = _make_locked()
        if len(os.fsencode(self._path)) <= PATH_LIMIT:
            os.environ[PATH_VARIABLE] = str(self._path)

    def remove(self) -> None:
        """Remove the folder and the sockets, and unset PATH_VARIABLE if it names the folder."""
        path, self._path = self._path, None
        if path is not None:
            if os.environ.get(PATH_VARIABLE) == str(path):
                # Another engine of this process, or a program that it starts, would look for a folder that is gone.
                del os.environ[PATH_VARIABLE]
            shutil.rmtree(path, ignore_errors=True)
            os.close(self._lock)


def _make_locked() -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        with suppress(FileNotFoundError):
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Another process may have taken the folder for one that is left, before it was locked.
            if path.is_dir():
                return path, lock
            os.close(lock)


def _remove_left() -> None:
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_uid == os.geteuid():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(lock)
