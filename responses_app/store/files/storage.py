"""Storage of the bytes of files: Django's storage `files`, a local folder or S3."""

from __future__ import annotations

import errno
import shutil
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from django.core.files.base import File as StorageFile
from django.core.files.storage import FileSystemStorage, Storage, storages

from responses_app.store.files import storage_calls

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
    def overdue_call(self) -> Future[Any] | None:
        """The call of the storage that has not answered in time, and may end later."""
        return self.__cause__.call if isinstance(self.__cause__, storage_calls.CallOverdue) else None

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
    with named_errors():
        storage_calls.call(_save, path, name, limit_s=storage_calls.SAVE_LIMIT_S)


async def save_async(path: Path, name: str) -> None:
    """Move a local file as `save` does."""
    with named_errors():
        await storage_calls.call_async(_save, path, name, limit_s=storage_calls.SAVE_LIMIT_S)


def _save(path: Path, name: str) -> None:
    with path.open("rb") as stream:
        _check_folder()
        stored = storage().save(name, LocalFile(path, stream))
    if stored != name:
        storage().delete(stored)
        raise FileExistsError(f"the storage has a file {name} already")


def exists(name: str) -> bool:
    """Return whether the storage has the file `name`. Raises StorageUnavailable."""
    with named_errors():
        return storage_calls.call(storage().exists, name)


def delete(name: str) -> None:
    """Delete the file `name` from the storage, if the file exists.

    Raises StorageUnavailable, also for a missing file in a folder without the marker: the file may be on a disk that is not mounted.
    """
    with named_errors():
        storage_calls.call(_delete, name)


async def delete_async(name: str) -> None:
    """Delete a file as `delete` does."""
    with named_errors():
        await storage_calls.call_async(_delete, name)


def _delete(name: str) -> None:
    _check_folder()
    if not storage().exists(name):
        _check_marker()
    storage().delete(name)


def _check_marker() -> None:
    """Raise StorageUnavailable if the storage is a folder without the marker."""
    folder = local_folder()
    if folder is not None and not (folder / MARKER).exists():
        raise _not_mounted(folder)


def read(name: str, limit: int) -> bytes:
    """Read the file `name`, at most `limit` bytes. Raises FileNotFoundError and StorageUnavailable."""
    with named_errors():
        return storage_calls.call(_read, name, limit, limit_s=storage_calls.READ_LIMIT_S)


async def read_async(name: str, limit: int) -> bytes:
    """Read a file as `read` does."""
    with named_errors():
        return await storage_calls.call_async(_read, name, limit, limit_s=storage_calls.READ_LIMIT_S)


def _read(name: str, limit: int) -> bytes:
    with _open(name) as stream:
        data: bytes = stream.read(limit)
        return data


def copy(name: str, target: Path) -> None:
    """Copy the file `name` to the new local file `target`. Raises FileNotFoundError, StorageUnavailable, and OSError of the target.

    A missing file in a folder without the marker is no FileNotFoundError: it may be on a disk that is not mounted.
    """
    with named_errors():
        stream = storage_calls.call(_open_mounted, name)
    try:
        with target.open("xb") as out:
            while chunk := _read_chunk(stream):
                out.write(chunk)
    finally:
        storage_calls.begin(stream.close)


def _open_mounted(name: str) -> Any:
    try:
        return _open(name)
    except FileNotFoundError:
        _check_marker()
        raise


def _read_chunk(stream: Any) -> bytes:
    with named_errors():
        data: bytes = storage_calls.call(stream.read, CHUNK_BYTES)
        return data


async def open_chunks(name: str) -> AsyncIterator[bytes]:
    """Open the file `name` and return an iterator over the bytes. Raises FileNotFoundError and StorageUnavailable, as the iterator does."""
    with named_errors():
        return _iter_chunks(await storage_calls.call_async(_open, name))


async def _iter_chunks(stream: Any) -> AsyncIterator[bytes]:
    """Yield the bytes of `stream`, read in threads, and close the stream."""
    try:
        while chunk := await _read_chunk_async(stream):
            yield chunk
    finally:
        # In a thread too: closing may ask the server of a folder.
        storage_calls.begin(stream.close)


async def _read_chunk_async(stream: Any) -> bytes:
    with named_errors():
        data: bytes = await storage_calls.call_async(stream.read, CHUNK_BYTES)
        return data


def _open(name: str) -> Any:
    _check_folder()
    return storage().open(name)


def free_bytes() -> int | None:
    """Return the free bytes of the disk of a storage in a folder, which may be missing before the first file. Raises StorageUnavailable."""
    folder = local_folder()
    if folder is None:
        return None
    with named_errors():
        return storage_calls.call(_free_bytes, folder)


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(next(one for one in (folder, *folder.parents) if one.exists())).free


def is_expected(folder: Path) -> bool:
    """Return whether this process refuses the folder without its marker."""
    return folder in _expected


def expect_marker(folder: Path) -> None:
    """Refuse the folder from now on while it has no marker."""
    _expected.setdefault(folder, folder.is_mount())


def check_folder() -> None:
    """Check the folder of the storage, as each use of a file does. Raises StorageUnavailable."""
    with named_errors():
        storage_calls.call(_check_folder)


def _check_folder() -> None:
    """Raise StorageUnavailable if the folder of the storage has vanished, was unmounted, or was never mounted.

    A storage makes a missing folder, and files in it or in the empty mount point would be hidden by the next mount.
    """
    folder = local_folder()
    if folder is None:
        return
    is_marked, is_mount = (folder / MARKER).exists(), folder.is_mount()
    if not is_marked:
        check_kind(folder)
    else:
        _expected.setdefault(folder, is_mount)
    if folder in _expected and (not is_marked or (_expected[folder] and not is_mount)):
        raise _not_mounted(folder)


def check_kind(folder: Path) -> None:
    """Raise StorageUnavailable if there is something else in the place of the folder, which no mount and no marker mends."""
    if folder.exists() and not folder.is_dir():
        raise StorageUnavailable(f"{folder} is not a folder: name another in RESPONSES_FILE_STORAGE, or move the file away")


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
    except storage_calls.CallOverdue as error:
        raise StorageUnavailable(str(error)) from error
    except Exception as error:
        raise StorageUnavailable(f"{type(error).__name__}: {error}") from error
