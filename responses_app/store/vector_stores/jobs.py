"""Queue of files to ingest, in Postgres: claims in turns of the projects, leases, results, and attempts with back-off.

A worker that dies leaves its claim. At the end of the lease another worker claims the file again.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db import connection, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from responses_app.models import StoreFileStatus, VectorStoreFile
from responses_app.store.vector_stores.chunker import TextChunk
from responses_app.store.vector_stores.search import store_term

LEASE_S = 30.0
RENEW_EVERY_S = 10.0
MAX_ATTEMPTS = 5
RETRY_PAUSES_S = (1.0, 5.0, 30.0, 120.0)
# Pause of a file that waited in vain for other files of the project.
BUSY_PAUSE_S = 2.0
# Pause while a server that all files need is away.
OUTAGE_PAUSE_S = 30.0
# Age of a file from which on its attempts count in an outage too, as clients poll until it is completed or failed.
MAX_OUTAGE = timedelta(hours=1)
INSERT_BATCH = 200
SERVER_ERROR = "server_error"
CRASHED = "The server ended in each attempt to read the file."

_DUE = "status = 'in_progress' AND due_at <= clock_timestamp() AND attempts < %(attempts)s"
# Stores with due files. Each step of `busy` finds the next store in an index, so the number of waiting files does not matter.
# First the project with the fewest files in work in all processes, then the project whose last claim is the longest ago.
_TURNS_SQL = f"""
WITH RECURSIVE busy (id) AS (
  (SELECT store_id FROM responses_app_vectorstorefile WHERE status = 'in_progress' ORDER BY store_id LIMIT 1)
  UNION ALL
  SELECT (SELECT store_id FROM responses_app_vectorstorefile WHERE status = 'in_progress' AND store_id > busy.id
    ORDER BY store_id LIMIT 1) FROM busy WHERE busy.id IS NOT NULL),
running AS MATERIALIZED (
  SELECT store.project, count(*) AS files FROM responses_app_vectorstorefile file
  JOIN responses_app_vectorstore store ON store.id = file.store_id
  WHERE file.status = 'in_progress' AND file.claim IS NOT NULL AND file.due_at > clock_timestamp() GROUP BY store.project)
SELECT store.id, store.project FROM busy JOIN responses_app_vectorstore store USING (id)
CROSS JOIN LATERAL (
  SELECT file.id, due_at FROM responses_app_vectorstorefile file WHERE store_id = store.id AND {_DUE}
  ORDER BY due_at, file.id LIMIT 1) AS first
LEFT JOIN running USING (project) LEFT JOIN responses_app_ingestionturn turn USING (project)
WHERE store.project <> ALL(%(full)s)
ORDER BY coalesce(running.files, 0), turn.claimed_at NULLS FIRST, first.due_at, first.id
"""  # noqa: S608 - no input
_CLAIM_SQL = f"""
WITH claimed AS (
  UPDATE responses_app_vectorstorefile SET claim = %(claim)s, attempts = attempts + 1,
    due_at = clock_timestamp() + make_interval(secs => %(lease)s)
  WHERE id = (
    SELECT id FROM responses_app_vectorstorefile WHERE store_id = %(store)s AND {_DUE}
    ORDER BY due_at, id LIMIT 1 FOR UPDATE SKIP LOCKED)
  RETURNING id),
turn AS (
  INSERT INTO responses_app_ingestionturn (project, claimed_at) SELECT %(project)s, clock_timestamp() FROM claimed
  ON CONFLICT (project) DO UPDATE SET claimed_at = excluded.claimed_at)
SELECT id FROM claimed
"""  # noqa: S608 - no input
# Files whose workers died in every attempt.
_FAIL_SQL = """
UPDATE responses_app_vectorstorefile SET status = 'failed', claim = NULL, error_code = %(code)s, error_message = %(message)s
WHERE status = 'in_progress' AND due_at <= clock_timestamp() AND attempts >= %(attempts)s
"""
# Files that wait longer than any pause: the clock was set back since. Their claims last for a whole lease.
_MEND_SQL = """
UPDATE responses_app_vectorstorefile SET due_at = clock_timestamp() + make_interval(secs => %s)
WHERE status = 'in_progress' AND due_at > clock_timestamp() + make_interval(secs => %s)
"""
_INSERT_SQL = """
INSERT INTO responses_app_filechunk (store_file_id, store_id, position, start, tokens, text, search, embedding)
VALUES (%s, %s, %s, %s, %s, %s, array_to_tsvector(ARRAY[%s]) || to_tsvector(%s::regconfig, %s), %s)
"""
# In bytes, for each number of an embedding.
_REAL_BYTES = 4


@dataclass(frozen=True, slots=True)
class NewChunk:
    """Chunk to store, with an embedding if the server has an embedder."""

    chunk: TextChunk
    embedding: Sequence[float] | None = None

    @property
    def usage_bytes(self) -> int:
        """Bytes of the text and of the embedding."""
        return len(self.chunk.text.encode()) + _REAL_BYTES * len(self.embedding or ())


def claim_next(full: Collection[str] = ()) -> VectorStoreFile | None:
    """Claim the file that is due for the longest time, of the project whose turn it is; None if no file is due.

    Projects of `full` have no turn. Files of many crashes become failed.
    """
    with connection.cursor() as cursor:
        cursor.execute(_TURNS_SQL, {"attempts": MAX_ATTEMPTS, "full": list(full)})
        for store, project in cursor.fetchall():
            values = {"claim": uuid.uuid4(), "lease": LEASE_S, "attempts": MAX_ATTEMPTS, "store": store, "project": project}
            cursor.execute(_CLAIM_SQL, values)
            # None if other workers have claimed the due files of the store meanwhile.
            if (row := cursor.fetchone()) is not None:
                return VectorStoreFile.objects.select_related("store", "file").filter(pk=row[0]).first()
        cursor.execute(_FAIL_SQL, {"code": SERVER_ERROR, "message": CRASHED, "attempts": MAX_ATTEMPTS})
    return None


def mend_due() -> int:
    """Let files be due soon whose time is further away than any pause. Return their number."""
    with connection.cursor() as cursor:
        cursor.execute(_MEND_SQL, [LEASE_S, 2 * max(*RETRY_PAUSES_S, LEASE_S, OUTAGE_PAUSE_S)])
        return int(cursor.rowcount)


def renew(job: VectorStoreFile) -> bool:
    """Extend the lease of `job`. False if the file was cancelled, removed, or claimed by another worker."""
    return _claimed(job).update(due_at=Now() + timedelta(seconds=LEASE_S)) > 0


def complete(job: VectorStoreFile, chunks: Sequence[NewChunk], embedding_model: str = "") -> bool:
    """Store the chunks of `job` in place of earlier chunks, in a single transaction. False if the claim is lost; then nothing changes.

    `embedding_model` is the model of their embeddings.
    """
    with transaction.atomic():
        if _claimed(job).select_for_update().values_list("pk", flat=True).first() is None:
            return False
        job.chunks.all().delete()
        for start in range(0, len(chunks), INSERT_BATCH):
            _insert(job, start, chunks[start : start + INSERT_BATCH])
        usage = sum(chunk.usage_bytes for chunk in chunks)
        no_error = {"error_code": "", "error_message": ""}
        return _end(job, StoreFileStatus.COMPLETED, usage_bytes=usage, embedding_model=embedding_model, **no_error)


def fail(job: VectorStoreFile, code: str, message: str) -> bool:
    """End `job` as failed, with the error that the API shows. False if the claim is lost."""
    with transaction.atomic():
        if not _end(job, StoreFileStatus.FAILED, error_code=code, error_message=message.replace("\0", ""), usage_bytes=0):
            return False
        job.chunks.all().delete()
        return True


def retry(job: VectorStoreFile, message: str) -> bool:
    """Release `job` for another attempt after a pause, or fail `job` after the last attempt. False if the claim is lost.

    Meanwhile `message` is the error that the API shows.
    """
    if job.attempts >= MAX_ATTEMPTS:
        return fail(job, SERVER_ERROR, message)
    pause = RETRY_PAUSES_S[min(job.attempts, len(RETRY_PAUSES_S)) - 1]
    return _claimed(job).update(claim=None, due_at=Now() + timedelta(seconds=pause), **_shown(message)) > 0


def wait_for_outage(job: VectorStoreFile, message: str) -> None:
    """Return `job` to the queue until a server that all files need may be back. Attempts count from MAX_OUTAGE on."""
    if timezone.now() - job.created_at > MAX_OUTAGE:
        retry(job, message)
        return
    _claimed(job).update(**_shown(message))
    release(job, OUTAGE_PAUSE_S)


def release(job: VectorStoreFile, pause_s: float = 0.0) -> None:
    """Return `job` to the queue, where it is due after `pause_s` seconds. The attempt does not count."""
    due_at = Now() + timedelta(seconds=pause_s)
    _claimed(job).update(claim=None, due_at=due_at, attempts=max(job.attempts - 1, 0))


def _shown(message: str) -> dict[str, str]:
    return {"error_code": SERVER_ERROR, "error_message": message.replace("\0", "")}


def _claimed(job: VectorStoreFile) -> QuerySet[VectorStoreFile]:
    return VectorStoreFile.objects.filter(claim=job.claim, pk=job.pk, status=StoreFileStatus.IN_PROGRESS)


def _end(job: VectorStoreFile, status: StoreFileStatus, **fields: object) -> bool:
    return _claimed(job).update(status=status, claim=None, **fields) > 0


def _insert(job: VectorStoreFile, start: int, chunks: Sequence[NewChunk]) -> None:
    term = store_term(job.store_id)
    rows = [
        (
            job.pk,
            job.store_id,
            position,
            new.chunk.start,
            new.chunk.tokens,
            new.chunk.text,
            term,
            job.store.text_config,
            new.chunk.text,
            None if new.embedding is None else list(new.embedding),
        )
        for position, new in enumerate(chunks, start)
    ]
    with connection.cursor() as cursor:
        cursor.executemany(_INSERT_SQL, rows)
