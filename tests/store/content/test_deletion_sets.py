"""Deletion of many responses at a time leaves the same rows as the deletion of one after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from unittest import mock

from django.db import connection, connections, transaction
from django.db.models import QuerySet
from django.test import TransactionTestCase
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from responses_app.models import (
    Conversation,
    ConversationItem,
    Event,
    Image,
    Item,
    Lease,
    LogForm,
    LogPage,
    Response,
    RoundPrompt,
    StoredRequest,
    ToolOutput,
)
from responses_app.store.content import batches, deletion
from responses_app.store.content.batches import change_in_batches
from responses_app.store.content.deletion import delete_rows, erase
from responses_app.store.log import retention
from responses_app.store.log.archive import archive_log
from tests.support.store.failing_deletions import fail_deletions
from tests.support.store.log_records import NOW
from tests.support.store.stored_logs import log_frames, stored_response
from tests.support.store.table_contents import contents

SIZE = 12


def add_response(uid: str, *, before: Sequence[Response | Item] = (), **fields: object) -> Response:
    """Store a response with two items, an image and a row in each other table. `before` are the responses and items of the history."""
    history = [key for one in before for key in ([one.pk] if isinstance(one, Item) else keys_of(one))]
    row = Response(uid=uid, project="p", model="m", status="completed", history=history, created_at=NOW, ended_at=NOW)
    for name, value in {"thread": uid, **fields}.items():
        setattr(row, name, value)
    row.save()
    for name in ("in", "out"):
        item = Item.objects.create(uid=f"msg_{uid}_{name}", response=row, project="p", type="message", body="{}")
        Image.objects.create(item=item, url=f"https://example.com/{item.uid}", data=b"x")
    Event.objects.create(response=row, number=0, type="response.created", data="{}")
    LogPage.objects.create(response=row, first=0, last=0, data=b"x")
    StoredRequest.objects.create(response=row, create_request="{}", prompt_tokens=b"1234")
    RoundPrompt.objects.create(response=row, number=0, shared_tokens=0, prompt_tokens=b"1234")
    ToolOutput.objects.create(response=row, item_uid=f"msg_{uid}_out", text=b"output", images=[])
    Lease.objects.create(response=row, model="m")
    return row


def keys_of(row: Response) -> list[int]:
    """Return the keys of the items that a continuation of `row` has as history."""
    return [*row.history, *row.items.order_by("pk").values_list("pk", flat=True)]


def build(data: st.DataObject) -> list[Response]:
    """Store chains with forks, conversations with items of others, and single responses. Return the responses, oldest first."""
    rows, conversations = list[Response](), list[Conversation]()
    kinds = data.draw(
        st.lists(st.sampled_from(["single", "next", "next", "next", "new", "conversation"]), min_size=2, max_size=SIZE)
    )
    for number, kind in enumerate(kinds):
        if kind == "next" and rows:
            earlier = data.draw(st.sampled_from(rows))
            rows.append(add_response(f"resp_{number}", before=[earlier], thread=earlier.thread))
        elif kind == "new" or (kind == "conversation" and not conversations):
            conversations.append(Conversation.objects.create(uid=f"conv_{number}", project="p", created_at=NOW))
        elif kind == "conversation":
            rows.append(_in_conversation(data, f"resp_{number}", data.draw(st.sampled_from(conversations))))
        else:
            rows.append(add_response(f"resp_{number}"))
    # An item that is taken out of a conversation stays in the histories.
    links = list(ConversationItem.objects.order_by("pk"))
    for link in links:
        if data.draw(st.booleans()):
            link.delete()
    return rows


def _in_conversation(data: st.DataObject, uid: str, conversation: Conversation) -> Response:
    stored = list(Item.objects.order_by("pk"))
    others = data.draw(st.lists(st.sampled_from(stored), max_size=2)) if stored else []
    _link(conversation, [*others, Item.objects.create(uid=f"msg_{uid}_alone", project="p", type="message", body="{}")])
    items = [link.item for link in conversation.conversation_items.order_by("pk").select_related("item")]
    row = add_response(uid, before=items, thread=conversation.uid, conversation=conversation)
    _link(conversation, list(row.items.order_by("pk")))
    return row


def _link(conversation: Conversation, items: Sequence[Item]) -> None:
    known = set(conversation.conversation_items.values_list("uid", flat=True))
    ConversationItem.objects.bulk_create(
        [ConversationItem(conversation=conversation, item=item, uid=item.uid) for item in {*items} if item.uid not in known]
    )


def delete_by_rule(row: Response) -> None:
    """Delete a response by the rule as models say it: items that no response of the thread, no owner and no conversation needs."""
    mine = row.items.all() | Item.objects.filter(pk__in=row.history, response=None)
    others = Response.objects.filter(thread=row.thread).exclude(pk=row.pk)
    needed = {key for history in others.values_list("history", flat=True) for key in history}
    unneeded = set(mine.filter(conversation_items=None).values_list("pk", flat=True)) - needed
    Item.objects.filter(pk__in=unneeded).delete()
    LogPage.objects.filter(response=row).delete()
    row.delete()


def delete_each(rows: Sequence[Response], delete: Callable[[Response], object]) -> None:
    """Delete one response after the other."""
    for row in rows:
        delete(Response.objects.get(pk=row.pk))


def delete_in_batches(rows: QuerySet[Response]) -> int:
    """Delete responses in batches. Return their number."""
    return sum(change_in_batches(rows, delete_rows))


class DeletionInSetsTest(TestCase):
    """Against the real database."""

    def remaining(self, delete: Callable[[], object]) -> list[str]:
        """Return all rows after a deletion that is then undone."""
        with transaction.atomic():
            delete()
            with connection.cursor() as cursor:
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            rows = sorted(contents().splitlines())
            transaction.set_rollback(True)
        return rows

    @given(st.data())
    @settings(max_examples=20, deadline=None)
    def test_a_set_leaves_what_single_deletions_leave(self, data: st.DataObject) -> None:
        rows = build(data)
        newest_first = [row for row in rows[::-1] if data.draw(st.booleans())]
        expected = self.remaining(partial(delete_each, newest_first, delete_by_rule))
        self.assertEqual(self.remaining(partial(delete_each, newest_first, lambda row: erase("p", row.uid))), expected)
        self.assertEqual(self.remaining(partial(delete_rows, [row.pk for row in newest_first])), expected)
        delete_rows([row.pk for row in rows])
        unlinked = Item.objects.filter(conversation_items=None).exclude(uid__endswith="alone")
        self.assertEqual([item.uid for item in unlinked], [])

    def test_the_size_of_the_batches_does_not_matter_within_chains(self) -> None:
        first = add_response("resp_0")
        second = add_response("resp_1", before=[first], thread=first.thread)
        fork = add_response("resp_2", before=[first], thread=first.thread)
        last = add_response("resp_3", before=[second], thread=first.thread)
        for chosen in ([first, second, last], [first, fork, last], [second, fork, last], [first, second, fork, last]):
            due = Response.objects.filter(pk__in=[row.pk for row in chosen])
            expected = self.remaining(partial(delete_each, chosen, delete_by_rule))
            for size in (1, 2, 4):
                with self.subTest(chosen=chosen, size=size), mock.patch.object(batches, "FIRST_BATCH", size):
                    self.assertEqual(self.remaining(partial(delete_in_batches, due)), expected)

    def test_no_table_of_responses_or_items_is_forgotten(self) -> None:
        for model in (Response, Item):
            for relation in model._meta.related_objects:
                with self.subTest(model=model, relation=relation.name):
                    self.assertIn(f"{relation.related_model._meta.db_table} ", deletion.DELETE_SQL)

    def test_a_damaged_response_stays_and_the_others_go(self) -> None:
        for number in range(9):
            add_response("resp_damaged" if number == 4 else f"resp_{number}")
        fail_deletions()
        with self.assertLogs("responses.batches", "WARNING"):
            self.assertEqual(delete_in_batches(Response.objects.all()), 8)
        self.assertEqual([row.uid for row in Response.objects.all()], ["resp_damaged"])

    def test_the_deltas_of_a_damaged_log_stay_and_those_of_others_go(self) -> None:
        for number in range(3):
            archive_log(stored_response(log_frames(4), f"resp_{number}").pk)
        damaged = Response.objects.get(uid="resp_1")
        LogPage.objects.filter(response=damaged, first=0).update(data=b"x")
        batches.warn_once.cache_clear()
        with self.assertLogs("responses.batches", "WARNING"):
            self.assertEqual(sum(retention.prune("deltas", NOW.replace(year=2027))), 2)
        self.assertEqual([row.uid for row in Response.objects.filter(log_form=LogForm.PAGES)], ["resp_1"])


class ConcurrentDeletionTest(TransactionTestCase):
    """A second connection has locks."""

    def left(self, lock: Callable[[], Collection[int] | None]) -> set[str]:
        """Return the ids of the responses that a deletion of all leaves while another transaction has locks."""
        other = connections.create_connection("default")
        ours = connections["default"]
        try:
            connections["default"] = other
            other.set_autocommit(False)
            lock()
            connections["default"] = ours
            delete_in_batches(Response.objects.all())
            other.commit()
            left = set(Response.objects.values_list("uid", flat=True))
        finally:
            connections["default"] = ours
            other.close()
        return left

    def test_locked_responses_stay_and_the_others_go(self) -> None:
        locks: dict[str, Callable[[], Collection[int] | None]] = {
            "response": lambda: list(Response.objects.select_for_update().filter(uid="resp_1").values_list("pk", flat=True)),
            "item": lambda: list(Item.objects.select_for_update().filter(uid="msg_resp_1_in").values_list("pk", flat=True)),
        }
        for name, lock in locks.items():
            for number in range(3):
                add_response(f"resp_{number}")
            with self.subTest(locked=name):
                self.assertEqual(self.left(lock), {"resp_1"})
                delete_in_batches(Response.objects.all())
                self.assertEqual(Item.objects.count(), 0)

    def test_two_deletions_of_a_thread_leave_no_item(self) -> None:
        first = add_response("resp_0")
        add_response("resp_1", before=[first], thread=first.thread)
        add_response("resp_2")
        self.assertEqual(self.left(lambda: delete_rows([first.pk])), {"resp_1"})
        delete_in_batches(Response.objects.all())
        self.assertEqual(Item.objects.count(), 0)
