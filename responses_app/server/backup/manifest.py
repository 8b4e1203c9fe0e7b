"""Manifest of a backup: versions, counts and the checksum of each file. A folder without a manifest is no backup."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import StringConstraints, TypeAdapter, ValidationError

from responses_app.installation.keyring import encryption_keys

FORMAT: Final = 1
NAME: Final = "manifest.json"
DUMP: Final = "database.dump"
FILES: Final = "files"
KEYS: Final = "keys"
# Files of the data folder that are part of a backup.
SECRET_FILES: Final = ("secret_key", "api_key")
PURPOSE: Final = b"verbatim backup manifest"
CHUNK_BYTES: Final = 1024 * 1024


class BackupError(Exception):
    """Backup that cannot be made, read or restored; the message is a sentence with the remedy."""


@dataclass(frozen=True, slots=True)
class BackupFile:
    """File of a backup: the path in the folder, the size in bytes and the SHA-256."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """Contents of a backup. `secret_key_id` is a short hash of SECRET_KEY that does not reveal the key.

    `migrations` are the last ones of each app, `rows` counts of the main tables, `missing` names of files without bytes.
    """

    created_at: str
    postgres: Annotated[str, StringConstraints(pattern=r"^\d+")]
    secret_key_id: str
    migrations: Mapping[str, str]
    rows: Mapping[str, int]
    files: Sequence[BackupFile]
    missing: Sequence[str] = ()
    format: int = field(default=FORMAT)

    def write(self, folder: Path) -> None:
        """Write the manifest as the last file, so that an interrupted backup has none."""
        fresh = folder / f".{NAME}"
        fresh.touch(0o600)
        fresh.write_text(json.dumps(asdict(self), indent=1) + "\n")
        with fresh.open("rb") as stream:
            os.fsync(stream.fileno())
        fresh.replace(folder / NAME)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the manifest of a folder. Raises BackupError."""
        try:
            raw = json.loads((folder / NAME).read_text())
        except FileNotFoundError:
            raise BackupError(f"{folder} has no {NAME}, so it is no complete backup. Make another one.") from None
        except (OSError, ValueError) as error:
            raise BackupError(f"{folder / NAME} cannot be read: {error}. Use another copy of the backup.") from error
        if isinstance(raw, dict) and raw.get("format", FORMAT) != FORMAT:
            raise BackupError(f"The backup has the format {raw['format']!r}. Restore it with a later version of the server.")
        try:
            return TypeAdapter(cls).validate_python(raw)
        except ValidationError:
            raise BackupError(f"{folder / NAME} is not what backup writes. Use another copy of the backup.") from None

    @property
    def total_bytes(self) -> int:
        """Return the size of all files."""
        return sum(file.bytes for file in self.files)


def secret_key_id() -> str:
    """Return the hash that identifies SECRET_KEY."""
    return next(encryption_keys(PURPOSE)).id


def describe(folder: Path, file: Path) -> BackupFile:
    """Read a file of the folder and return size and checksum."""
    digest, size = hashlib.sha256(), 0
    with file.open("rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
    return BackupFile(str(file.relative_to(folder)), size, digest.hexdigest())


def check_files(folder: Path, manifest: Manifest) -> None:
    """Compare the size and the checksum of each file. Raises BackupError for the first difference."""
    for expected in manifest.files:
        file = (folder / expected.path).resolve()
        if not file.is_relative_to(folder.resolve()):
            raise BackupError(f"The manifest names a file outside of the backup: {expected.path}.")
        try:
            actual = describe(folder.resolve(), file)
        except OSError as error:
            raise BackupError(
                f"{expected.path} cannot be read: {error.strerror or error}. Use another copy of the backup."
            ) from error
        if actual != expected:
            raise BackupError(f"{expected.path} differs from its checksum. Use another copy of the backup.")
