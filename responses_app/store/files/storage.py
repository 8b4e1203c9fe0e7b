"""Storage of the bytes of files: Django's storage `files`, a local folder or S3."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from asgiref.sync import sync_to_async
from django.core.files.base import File as StorageFile
from django.core.files.storage import FileSystemStorage, Storage, storages

ALIAS = "files"
# The server sends a chunk after the client has read the chunk before, and looks every 20 ms.
CHUNK_BYTES = 1024 * 1024
# File in the folder of a storage, which a mount point without its disk lacks. A start writes it.
MARKER = ".verbatim"
# Folders that must have the marker, and whether each was a mount point.
_expected: dict[Path, bool] = {}


class StorageUnavailable(Exception):
    """Storage that cannot be written or read: a folder of another account or without a disk, or a bucket that is away.

    The message has the kind and the text of the cause, for the log.
    """

    @property
    def is_full(self) -> bool:
        """Return whether the cause is a full disk or a quota of the file system."""
        return isinstance(self.__cause__, OSError) and self.__cause__.errno in (errno.ENOSPC, errno.EDQUOT)

    @property
    def refusal(self) -> str:
        """Return the sentence for clients and models."""
        if self.is_full:
            return "The storage of files is full, so no files can be stored. Responses are still answered."
        return "The storage of files does not answer. Try again in a moment."


class LocalFile(StorageFile):  # type: ignore[type-arg]
    """Local file. A storage in a folder moves the file by `temporary_file_path`, other storages copy the bytes."""

    def __init__(self, path: Path, stream: IO[bytes]) -> None:
        super().__init__(stream, name=path.name)
        self._path = path

    def temporary_file_path(self) -> str:
        """Return the path of the file (Django's interface of uploaded files)."""
        return str(self._path)


def storage() -> Storage:
    """Return the storage of the settings."""
    return storages[ALIAS]


def local_folder() -> Path | None:
    """Return the folder of a storage in a folder, else None."""
    current = storage()
    return Path(current.location) if isinstance(current, FileSystemStorage) else None


def save(path: Path, name: str) -> None:
    """Move the local file `path` into the storage as `name`. Raises OSError and StorageUnavailable."""
    with path.open("rb") as stream, named_errors():
        check_folder()
        stored = storage().save(name, LocalFile(path, stream))
    if stored != name:
        storage().delete(stored)
        raise FileExistsError(f"the storage has a file {name} already")


def exists(name: str) -> bool:
    """Return whether the storage has the file `name`. Raises errors of the storage."""
    return storage().exists(name)


def delete(name: str) -> None:
    """Delete the file `name` from the storage, if the file exists.

    Raises StorageUnavailable, also for a missing file in a folder without the marker: the file may be on a disk that is not mounted.
    """
    with named_errors():
        check_folder()
        folder = local_folder()
        if folder is not None and not (folder / MARKER).exists() and not storage().exists(name):
            raise _not_mounted(folder)
        storage().delete(name)


def read(name: str, limit: int) -> bytes:
    """Read the file `name`, at most `limit` bytes. Raises FileNotFoundError and StorageUnavailable."""
    with named_errors(), _open(name) as stream:
        data: bytes = stream.read(limit)
        return data


async def open_chunks(name: str) -> AsyncIterator[bytes]:
    """Open the file `name` and return an iterator over the bytes. Raises FileNotFoundError and StorageUnavailable."""
    with named_errors():
        return _iter_chunks(await _in_thread(_open, name))


async def _iter_chunks(stream: Any) -> AsyncIterator[bytes]:
    """Yield the bytes of `stream`, read in threads, and close the stream."""
    try:
        while chunk := await _in_thread(stream.read, CHUNK_BYTES):
            yield chunk
    finally:
        stream.close()


def _open(name: str) -> Any:
    check_folder()
    return storage().open(name)


def is_expected(folder: Path) -> bool:
    """Return whether this process refuses the folder without its marker."""
    return folder in _expected


def expect_marker(folder: Path) -> None:
    """Refuse the folder from now on while it has no marker."""
    _expected.setdefault(folder, folder.is_mount())


def check_folder() -> None:
    """Raise StorageUnavailable if the folder of the storage has vanished, was unmounted, or was never mounted.

    A storage makes a missing folder, and files in it or in the empty mount point would be hidden by the next mount.
    """
    folder = local_folder()
    if folder is None:
        return
    is_marked, is_mount = (folder / MARKER).exists(), folder.is_mount()
    if is_marked:
        _expected.setdefault(folder, is_mount)
    if folder in _expected and (not is_marked or (_expected[folder] and not is_mount)):
        raise _not_mounted(folder)


def _not_mounted(folder: Path) -> StorageUnavailable:
    return StorageUnavailable(
        f"{folder} is not the folder with the stored files, as it has no file {MARKER} or is no mount point: mount its disk. "
        f"To go on without these files: touch {folder / MARKER}, and restart the server"
    )


@contextmanager
def named_errors() -> Iterator[None]:
    """Raise StorageUnavailable in place of all other errors of a storage, apart from FileNotFoundError."""
    try:
        yield
    except (FileNotFoundError, StorageUnavailable):
        raise
    except Exception as error:
        raise StorageUnavailable(f"{type(error).__name__}: {error}") from error


async def _in_thread(function: Any, *args: Any) -> Any:
    return await sync_to_async(function, thread_sensitive=False)(*args)
