"""Files of containers: rows together with the bytes in the storage; deletion of containers."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from uuid import uuid4

from asgiref.sync import sync_to_async
from django.db.models import DateTimeField, ExpressionWrapper, F, QuerySet
from django.utils import timezone

from responses_app.models import Container, ContainerFile, File, FileSource
from responses_app.store.db import durable_transaction
from responses_app.store.files import storage
from responses_app.store.files.pending import part_path, pending

WORK_FOLDER = "/mnt/data"
MINUTE = timedelta(minutes=1)


class FileTooLong(Exception):
    """More bytes than allowed."""


async def save(
    container: Container, uid: str, path: str, source: FileSource, chunks: AsyncIterator[bytes], max_bytes: int
) -> ContainerFile:
    """Store the file `path` of a container. A file at the same path is replaced and keeps its id; a new one gets the id `uid`.

    Raises FileTooLong, OSError, Container.DoesNotExist, and the errors of `chunks`.
    """
    name = new_name()
    part = part_path(name)
    try:
        size = await _collect(part, path, chunks, max_bytes)
        row = new_row(container, uid, path, source, size, name)
        # A storage over the network must not hold the thread of the database, which also writes the log.
        async with _pending(name):
            await sync_to_async(storage.save, thread_sensitive=False)(part, name)
            before = await sync_to_async(_replace)(row)
        if before is not None:
            async with _pending(before):
                await sync_to_async(storage.delete, thread_sensitive=False)(before)
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

    Raises OSError, Container.DoesNotExist.
    """
    with pending(row.storage_name):
        storage.save(part_path(row.storage_name), row.storage_name)
        before = _replace(row)
    if before is not None:
        with pending(before):
            storage.delete(before)


@asynccontextmanager
async def _pending(name: str) -> AsyncIterator[None]:
    """Mark the file `name` as `pending` does, with the database in its thread."""
    mark = pending(name)
    await sync_to_async(mark.__enter__)()
    try:
        yield
    except BaseException as error:
        await sync_to_async(mark.__exit__)(type(error), error, error.__traceback__)
        raise
    await sync_to_async(mark.__exit__)(None, None, None)


def delete(row: ContainerFile) -> None:
    """Delete a file: the row, then the bytes."""
    with pending(row.storage_name):
        ContainerFile.objects.filter(pk=row.pk).delete()
        storage.delete(row.storage_name)


def delete_container(row: Container) -> None:
    """Delete a container with its files."""
    for file in row.files.all():
        delete(file)
    row.delete()


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


async def copy_file(container: Container, uid: str, file: File) -> ContainerFile:
    """Copy an uploaded file into a container."""
    path = f"{WORK_FOLDER}/{file.filename}"
    return await save(container, uid, path, FileSource.USER, await storage.open_chunks(file.storage_name), file.bytes)


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


def _replace(row: ContainerFile) -> str | None:
    """Insert or update the row. Return the storage name of the replaced bytes. Raises Container.DoesNotExist."""
    with durable_transaction():
        # Two writers of a path wait for each other.
        Container.objects.select_for_update().get(pk=row.container_id)
        before = ContainerFile.objects.filter(container=row.container_id, path=row.path).first()
        if before is None:
            row.save(force_insert=True)
            return None
        row.pk, row.uid, row.created_at = before.pk, before.uid, before.created_at
        row.save(force_update=True)
        return before.storage_name
