"""Changes of configuration files: planned, shown as a diff, and written with a backup."""

from __future__ import annotations

import difflib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from responses_app.connect.connection import Agent, ConfigFile, Connection
from responses_app.connect.edits.errors import CannotEdit
from responses_app.connect.facts import ModelFacts

MASK_LENGTH = 10
# Key of this server, or of another API with the same form.
SECRET = re.compile(r"sk-[\w-]{20,}")
_MARK = "\ufeff"
# Files are found without a connection.
NO_CONNECTION = Connection("", "", ModelFacts("", 0))


@dataclass(frozen=True, slots=True)
class _Content:
    """Text of a file, None for a missing file, with the byte order mark and the line ends for the write."""

    text: str | None
    mark: str = ""
    line_end: str = "\n"


@dataclass(frozen=True, slots=True)
class Change:
    """Change of a file. `before` is None for a new file. The texts have neither a byte order mark nor the line ends of Windows."""

    path: Path
    before: str | None
    after: str
    is_secret: bool
    mark: str = ""
    line_end: str = "\n"

    def diff(self, key: str) -> str:
        """Return the change as a unified diff, in which the key is cut off, and so are other keys."""
        names = ("/dev/null" if self.before is None else str(self.path), str(self.path))
        lines = difflib.unified_diff((self.before or "").splitlines(), self.after.splitlines(), *names, lineterm="", n=2)
        return masked("\n".join(lines), key)


def plan(agent: Agent, connection: Connection, home: Path, environ: Mapping[str, str]) -> list[Change]:
    """Return the changes of an agent's files, without files that stay unchanged. Raises CannotEdit, which names the file."""
    return list(_changes(agent, connection, home, environ))


def write(change: Change) -> Path | None:
    """Write a file, and return the path of the backup of the old file. A link keeps the target. Raises OSError."""
    path = change.path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    backup = _back_up(path) if change.before is not None else None
    mode = 0o600 if change.is_secret or change.before is None else path.stat().st_mode & 0o777
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline=change.line_end) as file:
            file.write(change.mark + change.after)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return backup


def masked(text: str, key: str) -> str:
    """Return a text without the end of the key and of each other key."""
    shown = text.replace(key, f"{key[:MASK_LENGTH]}…")
    return SECRET.sub(lambda secret: f"{secret[0][:MASK_LENGTH]}…", shown)


def find_secrets(agent: Agent, home: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the keys that an agent's files and variables have. Raises CannotEdit for a file that cannot be read."""
    for name in agent.variables(NO_CONNECTION):
        yield from SECRET.findall(environ.get(name, ""))
    for file in agent.files(NO_CONNECTION, home, environ):
        yield from SECRET.findall(_read(file).text or "")


def _changes(agent: Agent, connection: Connection, home: Path, environ: Mapping[str, str]) -> Iterator[Change]:
    for file in agent.files(connection, home, environ):
        before = _read(file)
        try:
            after = file.edit(before.text or "")
        except (CannotEdit, RecursionError) as error:
            raise CannotEdit(f"{file.path} cannot be edited: {error}.") from error
        if after != before.text:
            yield Change(file.path, before.text, after, file.is_secret, before.mark, before.line_end)


def _read(file: ConfigFile) -> _Content:
    try:
        text = file.path.read_bytes().decode()
    except FileNotFoundError:
        return _Content(None)
    except OSError as error:
        raise CannotEdit(f"{file.path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise CannotEdit(
            f"{file.path} is no text in UTF-8 ({error.reason} at byte {error.start:,}): save it as UTF-8."
        ) from error
    mark = _MARK if text.startswith(_MARK) else ""
    ends_as_windows = 2 * text.count("\r\n") > text.count("\n")
    plain_text = text.removeprefix(_MARK).replace("\r\n", "\n").replace("\r", "\n")
    return _Content(plain_text, mark, "\r\n" if ends_as_windows else "\n")


def _back_up(path: Path) -> Path:
    backup = path.with_name(f"{path.name}.{datetime.now().astimezone():%Y%m%d-%H%M%S-%f}.bak")
    handle = os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(path.read_bytes())
    return backup
