"""Folders of this installation: the code, in a checkout or an installed package, and the data, with a lock against a second server."""

from __future__ import annotations

import fcntl
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Self

PACKAGE = Path(__file__).resolve().parent.parent
# The checkout; or the folder of installed packages, which has no templates and no docs of this project beside the package.
ROOT = PACKAGE.parent
IS_CHECKOUT = (ROOT / "manage.py").is_file()
TEMPLATE_DIR = ROOT / "templates" if IS_CHECKOUT else PACKAGE / "templates"
EXAMPLES = ROOT / "docs" / "examples" if IS_CHECKOUT else PACKAGE / "examples"
# Commands as messages name them: of a checkout, or of an installed package.
MANAGE, SERVE = ("manage.py", "bin/serve") if IS_CHECKOUT else ("verbatim", "verbatim serve")
# MANAGE as a shell in the folder of the checkout needs it.
PROGRAM = ".venv/bin/python manage.py" if IS_CHECKOUT else "verbatim"

# Entries of the data folder, and what to do if one is of another kind.
FOLDERS = ("engines", "files", "logs", "metrics", "models", "postgres", "run", "sandbox", "uploads")
FILES = ("api_key", "lock", "sandbox-reader.sock", "sandbox.sock", "secret_key")
REMEDY = "move it away, or set RESPONSES_DATA_DIR to another folder"
# Entries that the server needs itself, with the rights. The folder of files may be elsewhere, and models may be prepared.
RIGHTS = dict.fromkeys(("api_key", "secret_key"), os.R_OK) | dict.fromkeys(
    ("engines", "logs", "metrics", "postgres", "run", "sandbox", "uploads"), os.R_OK | os.W_OK | os.X_OK
)

ENDING = "ending"


class InUse(Exception):
    """Data folder in use by another server, which `is_ending` if it has received a signal to end."""

    def __init__(self, message: str, *, is_ending: bool = False) -> None:
        super().__init__(message)
        self.is_ending = is_ending


class UnusableFolder(Exception):
    """Data folder that cannot be made or written to; the message names the remedy."""

    @classmethod
    def from_error(cls, folder: Path, error: OSError) -> Self:
        """Return the exception for an error of the system."""
        reason = error.strerror or str(error)
        return cls(f"the data folder {folder} cannot be used ({reason}): set RESPONSES_DATA_DIR to a folder of this user")


def data_dir() -> Path:
    """Return RESPONSES_DATA_DIR, or the default, as an absolute path."""
    return Path(os.environ.get("RESPONSES_DATA_DIR") or default_data_dir()).resolve()


def default_data_dir() -> Path:
    """Return `.data` of the checkout; of an installed package the folder of the user (XDG Base Directory Specification)."""
    if IS_CHECKOUT:
        return ROOT / ".data"
    return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser() / "verbatim"


def manage_command() -> list[str]:
    """Return the words of the program with the commands of the project: `manage.py`, or `verbatim` of an installed package."""
    return [sys.executable, str(ROOT / "manage.py")] if IS_CHECKOUT else [str(Path(sys.prefix) / "bin" / "verbatim")]


def make_folder(folder: Path) -> None:
    """Make a folder with mode 0700; the mode of an existing folder stays."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(exist_ok=True, mode=0o700)


def open_log(file: Path, flags: int = 0) -> int:
    """Open a log for writing with mode 0600, also for an existing file. `flags` as in os.open."""
    make_folder(file.parent)
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | flags, 0o600)
    os.fchmod(fd, 0o600)
    return fd


def lock(folder: Path) -> int:
    """Lock the folder, which is made if missing. The lock lasts while any process holds the descriptor.

    Raises InUse and UnusableFolder.
    """
    try:
        make_folder(folder)
        _check_kinds(folder)
        _check_rights(folder)
        fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise UnusableFolder.from_error(folder, error) from None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner, state = _parse_lock(os.read(fd, 40).decode(errors="replace"))
        os.close(fd)
        raise InUse(
            f"another server (process {owner}) works in {folder}; stop it, or set RESPONSES_DATA_DIR", is_ending=state == ENDING
        ) from None
    os.truncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    return fd


def note_end(fd: int) -> None:
    """Write into the lock that its server ends. On a full disk the lock stays as it is."""
    with suppress(OSError):
        os.pwrite(fd, f"{os.getpid()}\n{ENDING}\n".encode(), 0)


def _parse_lock(text: str) -> tuple[str, str]:
    """Return the process id in the text of a lock, or `unknown`, and the state of the server."""
    words = text.split()
    return (words[0] if words else "unknown"), (words[1] if len(words) > 1 else "")


def running_server(folder: Path) -> str | None:
    """Return the process id of the server that holds the lock of the data folder, or None."""
    try:
        with (folder / "lock").open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return _parse_lock(file.read(40))[0]
    except OSError:
        pass
    return None


def _check_kinds(folder: Path) -> None:
    """Raise UnusableFolder if an entry of FOLDERS is a file, or an entry of FILES is a folder."""
    for name in FOLDERS:
        if os.path.lexists(folder / name) and not (folder / name).is_dir():
            raise UnusableFolder(f"{folder / name} is no folder, but the server keeps files in it: {REMEDY}")
    for name in FILES:
        if (folder / name).is_dir():
            raise UnusableFolder(f"{folder / name} is a folder, but the server keeps a file at this place: {REMEDY}")


def _check_rights(folder: Path) -> None:
    """Raise UnusableFolder if rights of RIGHTS are missing, as after a start of another user in the same folder."""
    for name, rights in RIGHTS.items():
        entry = folder / name
        if entry.exists() and not os.access(entry, rights):
            raise UnusableFolder(
                f"{entry} {_missing_rights(entry, folder)}, or set RESPONSES_DATA_DIR to a folder of this user"
            )


def _missing_rights(entry: Path, folder: Path) -> str:
    """Return why this account may not use an entry of the data folder, and the remedy."""
    if os.statvfs(entry).f_flag & os.ST_RDONLY:
        return "is on a read-only file system: mount it for writing"
    if (status := entry.stat()).st_uid == os.geteuid():
        return f"has the mode {status.st_mode & 0o777:04o}: give the rights back to its user (chmod -R u+rwX {folder})"
    return f"belongs to another user: give the whole folder to the user of the server (chown -R USER {folder})"


def load_or_create(file: Path, make: str) -> str:
    """Return the secret in `file`. A missing file is written with `make`, mode 0600."""
    try:
        text = file.read_text().strip()
    except FileNotFoundError:
        text = ""
    return text or _write(file, make)


def _write(file: Path, text: str) -> str:
    make_folder(file.parent)
    # Written to a temporary file and renamed, so that a crash leaves no empty secret.
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "w") as out:
        out.write(text + "\n")
    fresh.replace(file)
    return text
