"""A prompt that begins as an earlier one keeps the other tokens alone, and is read whole, whatever is deleted."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.test import TestCase, TransactionTestCase
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase as PropertyTestCase

from responses_app.models import Response, StoredRequest, Worker
from responses_app.store.content.deletion import delete_rows
from responses_app.store.log.archive import archive_logs
from responses_app.store.log.rows.round_prompts import load_rounds
from responses_app.store.log.rows.shared_prompts import MAX_PARTS, read_length
from responses_app.store.log.token_log import encode_tokens
from tests.support.store.stored_logs import log_frames, stored_response
from tests.support.waiting import LIMIT_S

INSTRUCTIONS = list(range(1000, 3000))
FRAMES = log_frames(2)
numbers = count()


def archived(prompt: list[int], previous: Response | None = None) -> Response:
    """Store and archive a response with a prompt, which continues `previous`."""
    row = stored_response(FRAMES, f"resp_{next(numbers)}", previous_uid=previous.uid if previous else None)
    StoredRequest.objects.create(response=row, create_request="{}", prompt_tokens=encode_tokens(prompt))
    archive_logs([row.pk])
    return row


def prompt_of(row: Response) -> list[int]:
    """Return the prompt as the pages read it."""
    return list(load_rounds(row.pk)[0].prompt)


def stored_tokens() -> int:
    """Return the number of stored tokens of all prompts."""
    return sum(len(bytes(prompt)) for prompt in StoredRequest.objects.values_list("prompt_tokens", flat=True)) // 4


def migrate(name: str) -> None:
    """Migrate the tables of the application to a migration, forwards or backwards."""
    MigrationExecutor(connection).migrate([("responses_app", name)])


class SharedPromptTest(TestCase):
    """Against the real database."""

    def test_conversation_keeps_the_tokens_of_each_turn_once(self) -> None:
        prompt, row, turns = list(INSTRUCTIONS), None, list[tuple[Response, list[int]]]()
        for turn in range(20):
            prompt = [*prompt, *range(10 * turn, 10 * turn + 50)]
            row = archived(prompt, row)
            turns.append((row, prompt))
        for row, expected in turns:
            self.assertEqual(prompt_of(row), expected)
            self.assertEqual(read_length(row.pk), len(expected))
        self.assertEqual(stored_tokens(), len(prompt))
        self.assertEqual(StoredRequest.objects.filter(base=None).count(), 1)

    def test_requests_without_a_conversation_share_what_they_repeat(self) -> None:
        first = archived([*INSTRUCTIONS, 1, 2])
        second = archived([*INSTRUCTIONS, 3])
        self.assertEqual(StoredRequest.objects.get(pk=second.pk).shared_tokens, len(INSTRUCTIONS))
        self.assertEqual((prompt_of(first)[-2:], prompt_of(second)[-1:]), ([1, 2], [3]))

    def test_short_and_different_prompts_are_whole(self) -> None:
        archived(INSTRUCTIONS)
        for prompt in ([*range(500)], [9, *INSTRUCTIONS], [*INSTRUCTIONS[:1500], *range(4000)]):
            with self.subTest(tokens=len(prompt)):
                row = archived(prompt)
                self.assertIsNone(StoredRequest.objects.get(pk=row.pk).base)
                self.assertEqual(prompt_of(row), prompt)

    def test_few_rows_are_read_for_a_prompt(self) -> None:
        rows = [archived([*INSTRUCTIONS, *range(length)]) for length in range(2 * MAX_PARTS)]
        for length, row in enumerate(rows):
            self.assertEqual(prompt_of(row), [*INSTRUCTIONS, *range(length)])
        whole = StoredRequest.objects.filter(base=None).count()
        self.assertTrue(2 <= whole <= 4, whole)

    def test_whole_prompts_are_kept_while_a_process_of_an_earlier_version_runs(self) -> None:
        Worker.objects.create(uid=uuid4(), name="earlier", heartbeat_at=timezone.now())
        archived(INSTRUCTIONS)
        self.assertIsNone(StoredRequest.objects.get(pk=archived(INSTRUCTIONS).pk).base)


class DeletionTest(PropertyTestCase):
    """Law over conversations and deletions."""

    @given(
        st.lists(st.tuples(st.integers(0, 30), st.integers(0, 60)), min_size=2, max_size=8),
        st.lists(st.sets(st.integers(0, 7), min_size=1), max_size=4),
    )
    @pytest.mark.slow
    def test_prompts_stay_whole_whatever_is_deleted(self, turns: list[tuple[int, int]], deletions: list[set[int]]) -> None:
        rows, prompts = list[Response](), list[list[int]]()
        for place, (cut, more) in enumerate(turns):
            # A turn continues any earlier one, without its last tokens.
            earlier = prompts[cut % len(prompts)] if prompts else INSTRUCTIONS
            prompts.append([*earlier[: max(len(earlier) - cut, 1500)], *(place * 100 + token for token in range(more))])
            rows.append(archived(prompts[-1], rows[cut % len(rows)] if rows else None))
        expected = dict(zip((row.pk for row in rows), prompts, strict=True))
        for deletion in deletions:
            keys = [rows[place].pk for place in deletion if place < len(rows) and rows[place].pk in expected]
            delete_rows(keys)
            expected = {pk: prompt for pk, prompt in expected.items() if pk not in keys}
            self.assertEqual({pk: list(load_rounds(pk)[0].prompt) for pk in expected}, expected)


class SharedPromptConnectionsTest(TransactionTestCase):
    """Two connections."""

    def test_prompt_that_is_being_deleted_is_no_base(self) -> None:
        first, second = archived(INSTRUCTIONS), stored_response(FRAMES, "resp_second")
        StoredRequest.objects.create(response=second, create_request="{}", prompt_tokens=encode_tokens(INSTRUCTIONS))
        with ThreadPoolExecutor(1) as pool, transaction.atomic():
            StoredRequest.objects.filter(pk=first.pk).delete()
            pool.submit(_apart, second.pk).result(LIMIT_S)
        self.assertIsNone(StoredRequest.objects.get(pk=second.pk).base)
        self.assertEqual(prompt_of(second), INSTRUCTIONS)

    def test_deletion_waits_for_the_archive_and_passes_the_tokens_on(self) -> None:
        first, second = archived(INSTRUCTIONS), stored_response(FRAMES, "resp_second")
        StoredRequest.objects.create(response=second, create_request="{}", prompt_tokens=encode_tokens(INSTRUCTIONS))
        started = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            with transaction.atomic():
                archive_logs([second.pk])
                deleted = pool.submit(_delete, first.pk, started)
                started.wait(LIMIT_S)
                self.assertEqual(StoredRequest.objects.get(pk=second.pk).base, first.pk)
            deleted.result(LIMIT_S)
        self.assertEqual(prompt_of(second), INSTRUCTIONS)

    @pytest.mark.slow
    def test_way_back_makes_all_prompts_whole(self) -> None:
        prompts = [[*INSTRUCTIONS, *range(length)] for length in (0, 5, 50)]
        rows = [archived(prompt) for prompt in prompts]
        migrate("0036_smaller_indexes")
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT prompt_tokens FROM responses_app_storedrequest ORDER BY response_id")
                self.assertEqual([bytes(prompt) for (prompt,) in cursor.fetchall()], [encode_tokens(one) for one in prompts])
        finally:
            call_command("migrate", verbosity=0)
        self.assertEqual([prompt_of(row) for row in rows], prompts)


def _apart(pk: int) -> None:
    try:
        archive_logs([pk])
    finally:
        connection.close()


def _delete(pk: int, started: threading.Event) -> None:
    try:
        with transaction.atomic():
            started.set()
            StoredRequest.objects.filter(pk=pk).delete()
    finally:
        connection.close()
