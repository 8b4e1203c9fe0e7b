"""The one folder that everything lives in, with the lock that keeps a second server out of it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


class InUse(Exception):
    """Another server works in this data folder."""


def data_dir() -> Path:
    """RESPONSES_DATA_DIR, or `.data` beside the code; always absolute."""
    return Path(os.environ.get("RESPONSES_DATA_DIR") or ROOT / ".data").resolve()


def make_folder(folder: Path) -> None:
    """Make a folder that only its owner can enter; one that exists keeps its mode."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(exist_ok=True, mode=0o700)


def open_log(file: Path, flags: int = 0) -> int:
    """Open a log for writing, for its owner's eyes only; one of an older version is closed to others. `flags` as in os.open."""
    make_folder(file.parent)
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | flags, 0o600)
    os.fchmod(fd, 0o600)
    return fd


def lock(folder: Path) -> int:
    """Take the folder, making it if needed. The lock lasts as long as any process holds the descriptor. Raises InUse."""
    make_folder(folder)
    fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.read(fd, 20).decode(errors="replace").strip() or "unknown"
        os.close(fd)
        raise InUse(f"another server (process {owner}) works in {folder}; stop it, or set RESPONSES_DATA_DIR") from None
    os.truncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    return fd


def load_or_create(file: Path, make: str) -> str:
    """The secret in `file`; if there is none, `make` is written there, for our eyes only, and returned."""
    try:
        text = file.read_text().strip()
    except FileNotFoundError:
        text = ""
    return text or _write(file, make)


def _write(file: Path, text: str) -> str:
    make_folder(file.parent)
    # Written beside and moved: a crash between the two leaves no empty secret behind.
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "w") as out:
        out.write(text + "\n")
    fresh.replace(file)
    return text
