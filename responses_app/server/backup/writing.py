"""Making of a backup while the server runs: dump and list of files come from the same snapshot of the database."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psycopg
from django.conf import settings

from responses_app.installation.data_dir import data_dir
from responses_app.server.backup import programs
from responses_app.server.backup.manifest import (
    DUMP,
    FILES,
    KEYS,
    SECRET_FILES,
    BackupError,
    BackupFile,
    Manifest,
    describe,
    secret_key_id,
)
from responses_app.store.db import session_parameters
from responses_app.store.files import storage
from responses_app.utils.user_model import User

# Tables whose rows are counted in the manifest, by name.
COUNTED: Final = {
    "responses": "responses_app_response",
    "items": "responses_app_item",
    "conversations": "responses_app_conversation",
    "files": "responses_app_file",
    "API keys": "responses_app_apikey",
    "accounts": User._meta.db_table,
}
# Errors of a full disk, of a quota and of a limit on the size of files.
NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
MIB: Final = 1024 * 1024
_FILE_BYTES_SQL: Final = (
    "SELECT coalesce(sum(bytes), 0) FROM (SELECT bytes FROM responses_app_file "
    "UNION ALL SELECT bytes FROM responses_app_containerfile) AS file"
)
_MIGRATIONS_SQL: Final = "SELECT app, max(name) FROM django_migrations GROUP BY app ORDER BY app"


def write_backup(folder: Path) -> Manifest:
    """Write a backup into a new or empty folder and return the manifest. A failure leaves no file, and no folder that was new.

    Raises BackupError, OSError and psycopg.Error.
    """
    is_new = not folder.exists()
    _make_empty(folder)
    try:
        return _write(folder)
    except BaseException as error:
        _remove(folder, is_new=is_new)
        if isinstance(error, (BackupError, OSError)) and any(os.strerror(code) in str(error) for code in NO_ROOM):
            raise BackupError(f"{str(error).strip()}. {_room(folder)}") from error
        raise


def _room(folder: Path) -> str:
    """Return a sentence with the free and the needed space of a backup folder."""
    free = shutil.disk_usage(folder if folder.exists() else folder.parent).free
    with psycopg.connect(**session_parameters()) as link:
        needed = int(_value(link, "SELECT pg_database_size(current_database())")) + int(_value(link, _FILE_BYTES_SQL))
    return (
        f"A backup in {folder} needs up to {needed // MIB + 1:,} MiB, and {free // MIB:,} MiB are free there: make room, or name a "
        "folder on another disk."
    )


def _write(folder: Path) -> Manifest:
    with psycopg.connect(**session_parameters()) as link:
        link.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        snapshot = str(_value(link, "SELECT pg_export_snapshot()"))
        version = str(_value(link, "SHOW server_version"))
        dump = _dump(folder, snapshot, int(version.split(".")[0]))
        files, missing = _copy_files(folder, link)
        manifest = Manifest(
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            postgres=version,
            secret_key_id=secret_key_id(),
            migrations=dict(link.execute(_MIGRATIONS_SQL).fetchall()),
            rows=count_rows(link),
            files=[dump, *files, *_copy_secrets(folder)],
            missing=missing,
        )
    manifest.write(folder)
    return manifest


def count_rows(link: psycopg.Connection[Any]) -> dict[str, int]:
    """Count the rows of the main tables."""
    return {name: int(_value(link, f"SELECT count(*) FROM {table}")) for name, table in COUNTED.items()}  # noqa: S608 - constants


def has_secret_file() -> bool:
    """Return whether SECRET_KEY is in the data folder, and so in the backup, and not in the environment alone."""
    file = data_dir() / SECRET_FILES[0]
    return file.exists() and file.read_text().strip() == settings.SECRET_KEY


def _make_empty(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BackupError(f"{folder} cannot be made ({error.strerror}). Name a folder that this account may make.") from error
    if any(folder.iterdir()):
        raise BackupError(f"{folder} is not empty. Name a new folder.")
    folder.chmod(0o700)


def _remove(folder: Path, *, is_new: bool) -> None:
    """Remove the files of an unfinished backup, and the folder if `is_new`."""
    with suppress(OSError):
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if is_new:
            folder.rmdir()


def _dump(folder: Path, snapshot: str, server_major: int) -> BackupFile:
    program, (conninfo, environ) = programs.find_program("pg_dump", server_major), programs.connection_arguments()
    file = folder / DUMP
    options = ("--format=custom", "--compress=1", "--no-owner", "--no-acl", f"--snapshot={snapshot}", f"--file={file}")
    programs.run([program, *options, f"--dbname={conninfo}"], environ)
    file.chmod(0o600)
    return describe(folder, file)


def _copy_files(folder: Path, link: psycopg.Connection[Any]) -> tuple[Sequence[BackupFile], Sequence[str]]:
    """Copy the files of the snapshot. Return these, and the names of files whose bytes the storage does not have any more."""
    (folder / FILES).mkdir(mode=0o700)
    copied, missing = list[BackupFile](), list[str]()
    for name in _stored_names(link):
        target = folder / FILES / name
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            storage.copy(name, target)
        except FileNotFoundError:
            # Deleted since the snapshot.
            missing.append(name)
            continue
        except storage.StorageUnavailable as error:
            raise BackupError(f"No backup was made, as the storage of files cannot be read: {error}.") from error
        target.chmod(0o600)
        copied.append(describe(folder, target))
    return copied, missing


def _stored_names(link: psycopg.Connection[Any]) -> Iterator[str]:
    rows = link.execute(
        "SELECT storage_name FROM responses_app_file UNION SELECT storage_name FROM responses_app_containerfile ORDER BY 1"
    )
    return (name for (name,) in rows.fetchall())


def _copy_secrets(folder: Path) -> Iterator[BackupFile]:
    """Copy the secret files of the data folder, with mode 0600."""
    (folder / KEYS).mkdir(mode=0o700)
    for name in SECRET_FILES:
        source, target = data_dir() / name, folder / KEYS / name
        if source.exists():
            target.touch(0o600)
            target.write_bytes(source.read_bytes())
            yield describe(folder, target)


def _value(link: psycopg.Connection[Any], sql: str) -> Any:
    row = link.execute(sql.encode()).fetchone()
    assert row is not None  # noqa: S101 - a query that returns one row
    return row[0]
