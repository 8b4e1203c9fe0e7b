"""Queue of the ingestion: claims, leases, lost claims, and attempts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import connection
from django.test import TestCase
from django.utils import timezone

from responses_app.models import FileBatch, FileChunk, StoreFileStatus, VectorStoreFile
from responses_app.store.vector_stores import jobs, store_files, stores
from responses_app.store.vector_stores.chunker import chunk_text
from responses_app.store.vector_stores.jobs import NewChunk
from responses_app.store.vector_stores.store_files import NewStoreFile
from tests.support.store.vector_stores import MANY, add_file, add_text, make_file, make_store


def claim() -> VectorStoreFile:
    job = jobs.claim_next()
    assert job is not None
    return job


def end_lease(job: VectorStoreFile) -> None:
    VectorStoreFile.objects.filter(pk=job.pk).update(due_at=timezone.now() - timedelta(seconds=1))


def new_chunks(text: str) -> list[NewChunk]:
    return [NewChunk(chunk) for chunk in chunk_text(text)]


class JobsTest(TestCase):
    def setUp(self) -> None:
        self.store = make_store()

    def test_files_are_claimed_once_in_order(self) -> None:
        added = [add_file(self.store) for _ in range(2)]
        self.assertEqual([claim().pk, claim().pk], [row.pk for row in added])
        self.assertIsNone(jobs.claim_next())

    def test_file_of_a_dead_worker_is_claimed_again(self) -> None:
        add_file(self.store)
        dead = claim()
        end_lease(dead)
        again = claim()
        self.assertEqual((again.pk, again.attempts), (dead.pk, 2))
        self.assertFalse(jobs.renew(dead))
        self.assertFalse(jobs.complete(dead, new_chunks("Twice.")))
        self.assertTrue(jobs.complete(again, new_chunks("Once.")))
        self.assertEqual([chunk.text for chunk in FileChunk.objects.all()], ["Once."])

    def test_renewed_lease_is_not_claimed(self) -> None:
        add_file(self.store)
        job = claim()
        end_lease(job)
        self.assertTrue(jobs.renew(job))
        self.assertIsNone(jobs.claim_next())

    def test_lease_from_before_the_clock_was_set_back_ends(self) -> None:
        add_file(self.store)
        job = claim()
        self.assertEqual(jobs.mend_due(), 0)
        VectorStoreFile.objects.update(due_at=timezone.now() + timedelta(days=1))
        self.assertEqual(jobs.mend_due(), 1)
        job.refresh_from_db()
        self.assertLessEqual(job.due_at, timezone.now() + timedelta(seconds=jobs.LEASE_S))

    def test_new_chunks_replace_the_earlier(self) -> None:
        added = add_text(self.store, "Before.")
        store_files.add(self.store, [NewStoreFile(added.file.uid, {"new": True})], MANY)
        job = claim()
        self.assertEqual((job.pk, job.attributes), (added.pk, {"new": True}))
        self.assertEqual([chunk.text for chunk in FileChunk.objects.all()], ["Before."])
        self.assertTrue(jobs.complete(job, new_chunks("After.")))
        self.assertEqual([chunk.text for chunk in FileChunk.objects.all()], ["After."])
        self.assertEqual(stores.count_files([self.store])[self.store.pk].usage_bytes, len("After."))

    def test_failure_names_the_reason_and_leaves_no_chunks(self) -> None:
        added = add_text(self.store, "Before.")
        store_files.add(self.store, [NewStoreFile(added.file.uid)], MANY)
        self.assertTrue(jobs.fail(claim(), "invalid_file", "No text."))
        added.refresh_from_db()
        self.assertEqual((added.status, added.error_code, added.error_message), ("failed", "invalid_file", "No text."))
        self.assertEqual(FileChunk.objects.count(), 0)

    def test_last_attempt_fails_the_file(self) -> None:
        row = add_file(self.store)
        for attempt in range(1, jobs.MAX_ATTEMPTS + 1):
            job = claim()
            self.assertEqual(job.attempts, attempt)
            self.assertTrue(jobs.retry(job, "The database is away."))
            row.refresh_from_db()
            self.assertEqual((row.error_code, row.error_message), ("server_error", "The database is away."))
            self.assertIsNone(jobs.claim_next())
            end_lease(row)
        row.refresh_from_db()
        self.assertEqual((row.status, row.error_code, row.error_message), ("failed", "server_error", "The database is away."))

    def test_released_file_is_due_at_once(self) -> None:
        add_file(self.store)
        job = claim()
        jobs.release(job)
        self.assertEqual(claim().attempts, 1)

    def test_cancelled_batch_loses_its_claims(self) -> None:
        batch = FileBatch(uid="vsfb_1", store=self.store, created_at=timezone.now())
        store_files.add(self.store, [NewStoreFile(make_file().uid) for _ in range(2)], MANY, batch)
        job = claim()
        store_files.cancel_batch(batch)
        self.assertFalse(jobs.complete(job, new_chunks("Late.")))
        self.assertIsNone(jobs.claim_next())
        self.assertEqual(store_files.count_batch(batch).by_status, {StoreFileStatus.CANCELLED: 2})

    def test_removed_file_loses_its_claim(self) -> None:
        row = add_file(self.store)
        job = claim()
        self.assertTrue(store_files.remove(row))
        self.assertFalse(jobs.complete(job, new_chunks("Late.")))
        self.assertFalse(jobs.fail(job, "server_error", "Late."))

    def test_file_of_many_crashes_fails(self) -> None:
        row = add_file(self.store)
        for _ in range(jobs.MAX_ATTEMPTS):
            end_lease(claim())
        self.assertIsNone(jobs.claim_next())
        row.refresh_from_db()
        self.assertEqual((row.status, row.error_code), ("failed", "server_error"))

    def test_projects_take_turns(self) -> None:
        for project in ("busy", "busy", "quiet"):
            store = make_store(project)
            for _ in range(2):
                add_file(store)
        turns = []
        for _ in range(6):
            job = claim()
            turns.append(job.store.project)
            jobs.complete(job, new_chunks("Read."))
        self.assertEqual(turns, ["busy", "quiet", "busy", "quiet", "busy", "busy"])

    def test_project_with_the_fewest_files_in_work_is_next(self) -> None:
        stores = {project: make_store(project) for project in ("busy", "quiet")}
        for project in ("busy", "busy", "busy"):
            add_file(stores[project])
        first = [claim().store.project for _ in range(2)]
        add_file(stores["quiet"])
        jobs.complete(quiet := claim(), new_chunks("Read."))
        add_file(stores["quiet"])
        # The last claim of `quiet` is the newest, but no file of `quiet` is in work.
        self.assertEqual((first, quiet.store.project, claim().store.project), (["busy", "busy"], "quiet", "quiet"))

    def test_file_of_a_dead_worker_is_not_in_work(self) -> None:
        stores = [make_store("busy"), make_store("quiet")]
        add_file(stores[0])
        dead = claim()
        end_lease(dead)
        for store in stores:
            add_file(store)
        self.assertEqual([claim().store.project for _ in range(3)], ["quiet", "busy", "busy"])

    def test_full_project_has_no_turn(self) -> None:
        stores = [make_store("busy"), make_store("quiet")]
        for store in stores:
            add_file(store)
        job = jobs.claim_next(["busy", "other"])
        assert job is not None
        self.assertEqual(job.store.project, "quiet")
        self.assertIsNone(jobs.claim_next(["busy"]))

    def test_release_with_a_pause_counts_no_attempt(self) -> None:
        row = add_file(self.store)
        for _ in range(2 * jobs.MAX_ATTEMPTS):
            jobs.release(claim(), pause_s=60)
            self.assertIsNone(jobs.claim_next())
            end_lease(row)
        row.refresh_from_db()
        self.assertEqual((row.status, row.attempts), ("in_progress", 0))


@pytest.mark.django_db(transaction=True)
def test_claim_skips_files_that_another_worker_holds() -> None:
    store = make_store()
    rows = [add_file(store) for _ in range(2)]
    with connection.copy().cursor() as other:
        other.execute("BEGIN")
        other.execute("SELECT FROM responses_app_vectorstorefile WHERE id = %s FOR UPDATE", [rows[0].pk])
        assert claim().pk == rows[1].pk
        assert jobs.claim_next() is None
        other.execute("ROLLBACK")
        other.connection.close()
    assert claim().pk == rows[0].pk


@pytest.mark.django_db(transaction=True)
def test_claims_of_workers_differ() -> None:
    stores = [make_store(project) for project in ("one", "two")]
    rows = [add_file(store).pk for store in stores for _ in range(6)]
    together = Barrier(4)

    def work() -> list[int]:
        together.wait()
        try:
            return [job.pk for job in iter(jobs.claim_next, None)]
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        claimed = [pk for future in [threads.submit(work) for _ in range(4)] for pk in future.result()]
    assert sorted(claimed) == sorted(rows)
