"""Vector stores in the database of a test, filled without the ingestion."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest import mock

from django.utils import timezone

from responses_app.models import File, StoreFileStatus, VectorStore, VectorStoreFile
from responses_app.runs.ids import new_id
from responses_app.store.vector_stores import jobs, store_files
from responses_app.store.vector_stores.chunker import chunk_text
from responses_app.store.vector_stores.jobs import NewChunk
from responses_app.store.vector_stores.store_files import NewStoreFile
from responses_app.tools.file_search import service

MANY = 1_000_000


def make_store(project: str = "test", **fields: Any) -> VectorStore:
    """Insert a vector store."""
    now = timezone.now()
    values = {"text_config": "english", "created_at": now, "last_active_at": now, **fields}
    return VectorStore.objects.create(uid=new_id("vs_"), project=project, **values)


def make_file(project: str = "test", filename: str = "notes.txt") -> File:
    """Insert the row of a file without bytes."""
    uid = new_id("file-")
    digest = hashlib.sha256(uid.encode()).hexdigest()
    return File.objects.create(
        uid=uid,
        project=project,
        filename=filename,
        purpose="assistants",
        bytes=1,
        created_at=timezone.now(),
        storage_name=uid,
        sha256=digest,
    )


def add_file(store: VectorStore, filename: str = "notes.txt", attributes: Mapping[str, Any] | None = None) -> VectorStoreFile:
    """Add a new file to a store. The file waits for the ingestion."""
    new = NewStoreFile(make_file(store.project, filename).uid, attributes or {})
    store_files.add(store, [new], MANY)
    stored_file = store_files.find(store, new.file_id)
    assert stored_file is not None
    return stored_file


def add_text(
    store: VectorStore,
    text: str,
    filename: str = "notes.txt",
    attributes: Mapping[str, Any] | None = None,
    vectors: Sequence[Sequence[float]] = (),
) -> VectorStoreFile:
    """Add a new file with chunks of `text`, as after the ingestion. `vectors` are the embeddings of the chunks."""
    added = add_file(store, filename, attributes)
    job = jobs.claim_next()
    while job is not None and job.pk != added.pk:
        job = jobs.claim_next()
    assert job is not None
    chunks = chunk_text(text, job.chunk_tokens, job.overlap_tokens)
    embeddings = [*vectors, *[None] * len(chunks)]
    assert jobs.complete(job, [NewChunk(chunk, embeddings[n]) for n, chunk in enumerate(chunks)])
    added.refresh_from_db(fields=["status", "usage_bytes"])
    assert added.status == StoreFileStatus.COMPLETED
    return added


def search_in_test_thread() -> AbstractContextManager[object]:
    """Let searches use the connection of the test, whose transaction no other thread sees."""
    return mock.patch.object(service, "ThreadSensitiveContext", nullcontext)
