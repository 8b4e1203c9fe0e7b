"""Marks of files that are being added or deleted, so that the next start removes the rest of an interrupted change.

A mark is a locked file in the folder of uploads, named after the file in the storage. The lock ends with the process. A mark without
a lock belongs to an interrupted change: the file in the storage is deleted unless a row of the database names the file.
Several rows may name a file: an upload, and its copies in containers. Changes of these rows have marks of their own.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from django.conf import settings

from responses_app.installation.data_dir import make_folder
from responses_app.models import ContainerFile, File, StoredFile
from responses_app.store.files import storage

logger = logging.getLogger("responses.files")

MARK, PART = ".pending", ".part"
# Between the name of the file and the rest of the name of a mark.
SEPARATOR = "~"
MODE = 0o600


def upload_folder() -> Path:
    """Return the folder of uploads, which is made if missing."""
    folder = Path(settings.RESPONSES_UPLOAD_DIR)
    make_folder(folder)
    return folder


def part_path(name: str) -> Path:
    """Return the path at which the bytes of the file `name` are collected before the storage has them."""
    return upload_folder() / f"{name}{PART}"


@contextmanager
def pending(name: str) -> Iterator[None]:
    """Mark the file `name` as being added or deleted. Without an exception, the file and the row agree at the end.

    An exception in the context has the mark resolved at once, as after a crash.
    """
    path = upload_folder() / f"{name}{SEPARATOR}{uuid4().hex}{MARK}"
    fd, overdue = _lock_new(path), None
    try:
        try:
            yield
        except BaseException as error:
            overdue = error.overdue_call if isinstance(error, storage.StorageUnavailable) else None
            # The mark stays for the clean-up if the database or the storage does not answer. A storage hides no first error.
            with suppress(storage.StorageUnavailable):
                _resolve(name)
                if overdue is None:
                    path.unlink(missing_ok=True)
            raise
        path.unlink(missing_ok=True)
    finally:
        if overdue is None:
            os.close(fd)
        else:
            # The clean-up waits, as the call may still add the file.
            overdue.add_done_callback(lambda _ended: os.close(fd))


def clean_up() -> Iterator[int]:
    """Resolve the marks of interrupted changes. Yield 1 for each."""
    for path in sorted(upload_folder().glob(f"*{MARK}")):
        with suppress(FileNotFoundError, BlockingIOError):
            fd = os.open(path, os.O_RDWR)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                name = path.name.removesuffix(MARK).partition(SEPARATOR)[0]
                _resolve(name)
                path.unlink(missing_ok=True)
                logger.info("an interrupted change of the file %s was cleaned up", name)
            finally:
                os.close(fd)
            yield 1


@contextmanager
def deletion(name: str) -> Iterator[None]:
    """Mark the file `name` while the block deletes a row and the bytes. A storage that is away keeps the mark, for the clean-up."""
    try:
        with pending(name):
            yield
    except storage.StorageUnavailable as error:
        logger.error("the bytes of %s are deleted when the storage works again: %s", name, error)


def delete_unreferenced(name: str) -> None:
    """Delete the file `name` from the storage unless a row names the file."""
    if release(name):
        storage.delete(name)


def release(name: str) -> bool:
    """Remove the file `name` from the quota unless a row names the file. Return whether the bytes can be deleted.

    No row can name the file later: a copy needs the row of its upload.
    """
    # In this order: a container may have copied the upload just before the upload was deleted.
    if any(model.objects.filter(storage_name=name).exists() for model in (File, ContainerFile)):
        return False
    StoredFile.objects.filter(name=name).delete()
    return True


def _lock_new(path: Path) -> int:
    """Make and lock a mark. Repeated if a clean-up removes the mark between both steps."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, MODE)
        fcntl.flock(fd, fcntl.LOCK_EX)
        if os.fstat(fd).st_nlink:
            return fd
        os.close(fd)


def _resolve(name: str) -> None:
    """Remove the collected bytes of the file `name`, and the file in the storage unless a row names the file."""
    part_path(name).unlink(missing_ok=True)
    delete_unreferenced(name)
