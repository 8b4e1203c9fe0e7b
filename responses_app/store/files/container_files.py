"""Files of containers: rows together with the bytes in the storage; copies of uploads; deletion of containers."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from uuid import uuid4

from asgiref.sync import sync_to_async
from django.db.models import DateTimeField, ExpressionWrapper, F, QuerySet
from django.utils import timezone

from responses_app.models import Container, ContainerFile, File, FileSource
from responses_app.sandbox.base import WorkFile
from responses_app.store.db import durable_transaction
from responses_app.store.files import containers, quota, storage
from responses_app.store.files.pending import delete_unreferenced, deletion, part_path, pending, release

WORK_FOLDER = "/mnt/data"
MINUTE = timedelta(minutes=1)
# Limit of Linux for the name of a file.
MAX_NAME_BYTES = 255
# Bytes of a name extension, the dot included, that a shortened name keeps.
MAX_EXTENSION_BYTES = 16
DIGEST_CHARS = 8


class FileTooLong(Exception):
    """More bytes than allowed."""


async def save(
    container: Container, uid: str, file: WorkFile, chunks: Callable[[], AsyncIterator[bytes]], max_bytes: int
) -> ContainerFile:
    """Store a file that code wrote. A file at the same path is replaced and keeps the id; a new file gets the id `uid`.

    `chunks` opens the bytes once a file of the size of `file` may be stored. Raises WriteRefused, FileTooLong, OSError,
    Container.DoesNotExist, and the errors of `chunks`.
    """
    path = file.path
    await sync_to_async(check_write)(container, path, file.size)
    name = new_name()
    part = part_path(name)
    try:
        size = await _collect(part, path, chunks(), max_bytes)
        row = new_row(container, uid, path, FileSource.ASSISTANT, size, name)
        # A storage over the network must not hold the thread of the database, which also writes the log.
        async with _marked(pending(name)) as marks:
            await storage.save_async(part, name)
            before = await sync_to_async(_replace)(row, marks)
            if before is not None and await sync_to_async(release)(before):
                await storage.delete_async(before)
    finally:
        part.unlink(missing_ok=True)
    return row


def new_name() -> str:
    """Return a name for the storage."""
    return f"container-{uuid4().hex}"


def new_row(container: Container, uid: str, path: str, source: FileSource, size: int, name: str) -> ContainerFile:
    """Return a row that is not saved yet. `name` is the name in the storage, `size` is in bytes."""
    return ContainerFile(
        uid=uid, container=container, path=path, bytes=size, source=source, created_at=timezone.now(), storage_name=name
    )


def insert(row: ContainerFile) -> None:
    """Move the collected bytes into the storage, and write the row in place of the row with the same path.

    Raises WriteRefused, OSError, Container.DoesNotExist.
    """
    check_write(row.container, row.path, row.bytes)
    with ExitStack() as marks:
        marks.enter_context(pending(row.storage_name))
        storage.save(part_path(row.storage_name), row.storage_name)
        before = _replace(row, marks)
        if before is not None:
            delete_unreferenced(before)


def check_write(container: Container, path: str, size: int) -> None:
    """Check that a file of `size` bytes may be stored at `path`. Raises WriteRefused."""
    quota.check_disk(size)
    replaced = container.files.filter(path=path).values_list("storage_name", flat=True).first()
    quota.check_files(container.project, size, replaced)


@asynccontextmanager
async def _marked(mark: AbstractContextManager[None]) -> AsyncIterator[ExitStack]:
    """Enter a mark of a file, as of `pending`, with the database in its thread. The stack takes more marks."""
    marks = ExitStack()
    await sync_to_async(marks.enter_context)(mark)
    try:
        yield marks
    except BaseException as error:
        if not await sync_to_async(marks.__exit__)(type(error), error, error.__traceback__):
            raise
        return
    await sync_to_async(marks.close)()


def delete(row: ContainerFile) -> None:
    """Delete a file: the row, then the bytes unless another row names them."""
    with deletion(row.storage_name):
        ContainerFile.objects.filter(pk=row.pk).delete()
        delete_unreferenced(row.storage_name)


async def storage_names(container: Container) -> dict[str, str]:
    """Return the names in the storage of the files of a container, by path."""
    return {path: name async for path, name in container.files.values_list("path", "storage_name")}


async def delete_written(container: Container, names: Mapping[str, str]) -> None:
    """Delete the files at the paths in `names`, unless other bytes than the named ones have replaced a file."""
    async for row in container.files.filter(path__in=names):
        if row.storage_name == names[row.path]:
            async with _marked(deletion(row.storage_name)):
                await ContainerFile.objects.filter(pk=row.pk).adelete()
                if await sync_to_async(release)(row.storage_name):
                    await storage.delete_async(row.storage_name)


def delete_container(row: Container) -> None:
    """Delete a container with the files. Files that are added meanwhile are deleted too. `row` gets the time of the last use."""
    has_files = True
    while has_files:
        for file in row.files.all():
            delete(file)
        with durable_transaction():
            # A writer of files locks the row too.
            locked = Container.objects.select_for_update().filter(pk=row.pk).first()
            row.last_active_at = row.last_active_at if locked is None else locked.last_active_at
            has_files = row.files.exists()
            if not has_files:
                Container.objects.filter(pk=row.pk).delete()


def delete_all(rows: QuerySet[Container]) -> Iterator[int]:
    """Delete containers with their files. Yield 1 for each."""
    for row in rows.order_by("pk"):
        delete_container(row)
        yield 1


def delete_unused(now: datetime, keep: timedelta | None) -> Iterator[int]:
    """Delete containers that expired longer than `keep` ago; none without `keep`. Yield 1 for each."""
    if keep is None:
        return
    expiry = ExpressionWrapper(F("last_active_at") + F("expires_after_minutes") * MINUTE, output_field=DateTimeField())
    due = Container.objects.annotate(expiry=expiry).filter(expiry__lt=now - keep)
    yield from delete_all(due)


def create_container(row: Container, uploads: Sequence[File], new_id: Callable[[str], str]) -> bool:
    """Insert a container with copies of `uploads`, all or nothing. Return False if the id exists.

    `new_id` makes an id from a prefix. Raises ContainerQuotaExceeded, File.DoesNotExist.
    """
    with durable_transaction():
        if not containers.create(row):
            return False
        for upload in uploads:
            copy_upload(row, new_id("cfile_"), upload)
    return True


def copy_upload(container: Container, uid: str, upload: File) -> ContainerFile:
    """Add an uploaded file to a container. Both rows name the same bytes in the storage.

    Raises File.DoesNotExist, Container.DoesNotExist.
    """
    row = new_row(container, uid, work_path(upload.filename), FileSource.USER, upload.bytes, upload.storage_name)
    with ExitStack() as marks:
        with durable_transaction():
            # A deletion of the upload waits, and then keeps the bytes for the container.
            File.objects.select_for_update().get(pk=upload.pk)
            before = _write(row, marks)
        if before is not None:
            delete_unreferenced(before)
    return row


def work_path(filename: str) -> str:
    """Return the path of a file in the work folder.

    A name of more than MAX_NAME_BYTES bytes in UTF-8 is shortened before its extension, where a digest keeps names apart.
    """
    data = filename.encode("utf-8", "replace")
    if len(data) > MAX_NAME_BYTES:
        extension = os.path.splitext(filename)[1].encode("utf-8", "replace")
        end = extension if len(extension) <= MAX_EXTENSION_BYTES else b""
        end = f"~{hashlib.sha256(data).hexdigest()[:DIGEST_CHARS]}".encode() + end
        filename = (data[: MAX_NAME_BYTES - len(end)].decode("utf-8", "ignore").encode() + end).decode()
    return f"{WORK_FOLDER}/{filename}"


async def _collect(part: Path, path: str, chunks: AsyncIterator[bytes], max_bytes: int) -> int:
    """Write `chunks` to the local file `part`. Return the size in bytes. Raises FileTooLong, OSError."""
    size = 0
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        async for chunk in chunks:
            size += len(chunk)
            if size > max_bytes:
                raise FileTooLong(f"{path} is longer than {max_bytes} bytes.")
            out.write(chunk)
    return size


def _replace(row: ContainerFile, marks: ExitStack) -> str | None:
    """Insert or update the row of a file with separate bytes. Return the storage name of the replaced bytes.

    Raises FileQuotaExceeded, Container.DoesNotExist.
    """
    with durable_transaction():
        # Before any row is locked, in the order of `create_container`.
        quota.lock(row.container.project)
        return _write(row, marks, is_copy=False)


def _write(row: ContainerFile, marks: ExitStack, *, is_copy: bool = True) -> str | None:
    """Write the row in this transaction. Return the storage name of the bytes that the row had before, with a mark in `marks`."""
    # Two writers of a path wait for each other.
    Container.objects.select_for_update().get(pk=row.container_id)
    before = ContainerFile.objects.filter(container=row.container_id, path=row.path).first()
    if not is_copy:
        replaced = None if before is None else before.storage_name
        quota.add_file(row.container.project, row.storage_name, row.bytes, replaced)
    if before is None:
        row.save(force_insert=True)
        return None
    marks.enter_context(pending(before.storage_name))
    row.pk, row.uid, row.created_at = before.pk, before.uid, before.created_at
    row.save(force_update=True)
    return before.storage_name
