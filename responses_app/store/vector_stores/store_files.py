"""Queries of the files in vector stores, and of batches: add, find, list, cancel, remove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import Count
from django.utils import timezone

from responses_app.models import File, FileBatch, FileChunk, StoreFileStatus, VectorStore, VectorStoreFile
from responses_app.store.files.files import visible
from responses_app.store.paging import RowPage, read_page
from responses_app.store.vector_stores.chunker import DEFAULT_CHUNK_TOKENS, DEFAULT_OVERLAP_TOKENS
from responses_app.store.vector_stores.stores import FileCounts


@dataclass(frozen=True, slots=True)
class NewStoreFile:
    """File to add to a vector store. `path` is the place of the id in the request."""

    file_id: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    chunk_tokens: int = DEFAULT_CHUNK_TOKENS
    overlap_tokens: int = DEFAULT_OVERLAP_TOKENS
    path: str = "file_id"


class MissingFile(Exception):
    """A file is unknown, or belongs to another project. `file` is the file of the request."""

    def __init__(self, file: NewStoreFile) -> None:
        super().__init__(file.file_id)
        self.file = file


class TooManyFiles(Exception):
    """The vector store would have more files than the server allows."""


def add(
    store: VectorStore, new: Sequence[NewStoreFile], max_files: int, batch: FileBatch | None = None
) -> list[VectorStoreFile]:
    """Add files to a store, all or none, in a single transaction with `batch`. The ingestion begins soon after.

    A file that the store has already is ingested again, with the new attributes and chunk sizes.
    Raises MissingFile, TooManyFiles, VectorStore.DoesNotExist.
    """
    with transaction.atomic():
        VectorStore.objects.select_for_update().get(pk=store.pk)
        known = visible(store.project, timezone.now()).filter(uid__in=[one.file_id for one in new])
        files = {row.uid: row for row in known}
        missing = next((one for one in new if one.file_id not in files), None)
        if missing is not None:
            raise MissingFile(missing)
        present = {row.file_id for row in store.store_files.filter(file__in=files.values())}
        added = sum(row.pk not in present for row in files.values())
        if added and store.store_files.count() + added > max_files:
            raise TooManyFiles
        if batch is not None:
            batch.save(force_insert=True)
        rows = [_row(store, files[one.file_id], one, batch) for one in {one.file_id: one for one in new}.values()]
        return VectorStoreFile.objects.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=["store", "file"],
            update_fields=[
                "batch",
                "status",
                "attributes",
                "chunk_tokens",
                "overlap_tokens",
                "error_code",
                "error_message",
                "attempts",
                "claim",
                "due_at",
            ],
        )


def find(store: VectorStore, file_id: str, batch: FileBatch | None = None) -> VectorStoreFile | None:
    """Find a file of a store by the id of the file; None if not found."""
    rows = VectorStoreFile.objects.select_related("file").filter(store=store, file__uid=file_id)
    return (rows if batch is None else rows.filter(batch=batch)).first()


def page(
    store: VectorStore,
    *,
    status: str | None,
    limit: int,
    newest_first: bool,
    after: str | None,
    before: str | None,
    batch: FileBatch | None = None,
) -> RowPage[VectorStoreFile] | None:
    """Read up to `limit` files of a store or batch. None if `after` or `before` is not found."""
    rows = VectorStoreFile.objects.select_related("file").filter(store=store)
    if batch is not None:
        rows = rows.filter(batch=batch)
    # The status of the cursor's row may change between two pages.
    shown = rows if status is None else rows.filter(status=status)
    return read_page(
        shown, limit=limit, newest_first=newest_first, after=after, before=before, id_field="file__uid", cursor_rows=rows
    )


def set_attributes(row: VectorStoreFile, attributes: Mapping[str, Any]) -> bool:
    """Replace the attributes. False if the file was removed."""
    row.attributes = dict(attributes)
    return VectorStoreFile.objects.filter(pk=row.pk).update(attributes=row.attributes) > 0


def remove(row: VectorStoreFile) -> bool:
    """Remove a file from a store, with its chunks. False if it was removed before."""
    with transaction.atomic():
        locked = VectorStoreFile.objects.select_for_update().filter(pk=row.pk).first()
        if locked is not None:
            locked.delete()
        return locked is not None


def text_parts(row: VectorStoreFile) -> list[str]:
    """Return the text of a file in parts, one for each chunk, without the overlaps of chunks."""
    parts, end = [], 0
    for start, text in FileChunk.objects.filter(store_file=row).order_by("position").values_list("start", "text"):
        parts.append(text[max(end - start, 0) :])
        end = max(end, start + len(text))
    return [part for part in parts if part]


def find_batch(store: VectorStore, uid: str) -> FileBatch | None:
    """Find a batch of a store by id; None if not found."""
    return FileBatch.objects.filter(store=store, uid=uid).first()


def cancel_batch(batch: FileBatch) -> None:
    """Cancel the files of a batch that are not ingested yet. A worker that ingests such a file loses the claim.

    A batch without such files stays as it is.
    """
    with transaction.atomic():
        waiting = VectorStoreFile.objects.filter(batch=batch, status=StoreFileStatus.IN_PROGRESS)
        FileChunk.objects.filter(store_file__in=waiting).delete()
        if waiting.update(status=StoreFileStatus.CANCELLED, claim=None, usage_bytes=0) and batch.cancelled_at is None:
            batch.cancelled_at = timezone.now()
            batch.save(update_fields=["cancelled_at"])


def count_batch(batch: FileBatch) -> FileCounts:
    """Count the files of a batch by status."""
    groups = VectorStoreFile.objects.filter(batch=batch).order_by().values_list("status").annotate(Count("pk"))
    return FileCounts(dict(groups))


def _row(store: VectorStore, file: File, new: NewStoreFile, batch: FileBatch | None) -> VectorStoreFile:
    now = timezone.now()
    return VectorStoreFile(
        store=store,
        file=file,
        batch=batch,
        attributes=dict(new.attributes),
        chunk_tokens=new.chunk_tokens,
        overlap_tokens=new.overlap_tokens,
        due_at=now,
        created_at=now,
    )
