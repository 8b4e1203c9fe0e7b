"""Check of the storage of files as a whole, which also marks the folder of the storage."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryFile

from django.db import DatabaseError

from responses_app.models import ContainerFile, File
from responses_app.store.cluster.leases import live_workers
from responses_app.store.files import storage, storage_calls

# Files of each kind by which a folder is recognised. The newest ones may have been deleted after a backup.
NEWEST = 10
# Limit of each step of the check.
STEP_LIMIT_S = 4.0


def storage_problem() -> str | None:
    """Return a sentence if files cannot be stored or read, else None. Files of the database that are missing are no problem.

    A folder gets the marker if it has files of the database, or if this process begins and the database has none. Otherwise this
    process takes the folder for the mount point of a disk that is not mounted, and refuses to use it.
    """
    try:
        with storage.named_errors():
            _check()
    except (storage.StorageUnavailable, FileNotFoundError) as error:
        return (
            f"Files cannot be stored or read, and uploads are refused: {error}. "
            "Check the disk, the owner and the rights. All hosts of a database need the same RESPONSES_FILE_STORAGE."
        )
    return None


def _check() -> None:
    """Raise errors of the storage."""
    folder = storage.local_folder()
    if folder is None:
        storage_calls.call(storage.storage().exists, storage.MARKER, limit_s=STEP_LIMIT_S)
        return
    if not storage_calls.call((folder / storage.MARKER).exists, limit_s=STEP_LIMIT_S) and _may_be_marked(folder):
        storage_calls.call(_mark, folder, limit_s=STEP_LIMIT_S)
    storage.check_folder()
    storage_calls.call(_write_nothing, folder, limit_s=STEP_LIMIT_S)


def _mark(folder: Path) -> None:
    storage.check_kind(folder)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / storage.MARKER).touch(mode=0o600)


def _write_nothing(folder: Path) -> None:
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        # Without the name of the file: a sentence that changes would be logged at each check.
        raise storage.StorageUnavailable(f"{folder} cannot be written to ({error.strerror})") from error


def _may_be_marked(folder: Path) -> bool:
    try:
        names = [
            name
            for rows in (File.objects, ContainerFile.objects)
            for name in rows.order_by("-pk").values_list("storage_name", flat=True)[:NEWEST]
        ]
    except DatabaseError:
        return False
    if not names:
        return not storage.is_expected(folder)
    if any(map(storage.exists, names)):
        return True
    storage_calls.call(storage.expect_marker, folder)
    return False


def unmarked_folder() -> Path | None:
    """Return the folder of the storage if it lacks the marker, though a server that runs has seen or written it.

    Raises StorageUnavailable.
    """
    folder = storage.local_folder()
    with storage.named_errors():
        if folder is None or storage_calls.call((folder / storage.MARKER).exists):
            return None
        storage_calls.call(storage.check_kind, folder)
    return folder if live_workers().exists() else None


def missing_file() -> str | None:
    """Return the id of the newest uploaded file or container file if the storage does not have the file, else None."""
    for rows in (File.objects, ContainerFile.objects):
        row = rows.order_by("-pk").first()
        if row is not None and not storage.exists(row.storage_name) and rows.filter(pk=row.pk).exists():
            return str(row.uid)
    return None
