"""A long conversation of which only the newest items are read drops the same items as if everything was read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from itertools import count
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from hypothesis import given, settings
from hypothesis import strategies as st

from responses_app.dialects.base import Dialect, Turn
from responses_app.engines.replay.engine import ReplayEngine
from responses_app.models import Conversation, Item, Response
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.prepare.items.selection import select_new
from responses_app.runs.prepare.length import skipping
from responses_app.runs.prepare.length.skipping import NeedsAllItems
from responses_app.runs.prepare.length.truncation import PromptRenderer, Truncation, TruncationPolicy
from responses_app.store.content import conversations
from responses_app.store.content.history import ConversationContext, SkippedItems
from responses_app.tools.functions.as_functions import to_functions
from tests.support.api.case import HARMONY, HELLO, record_text
from tests.support.api.conversation_case import ConversationCase, user
from tests.support.dialects.parser_driver import chat, demo_vocabulary

pytestmark = pytest.mark.slow

DIALECTS: dict[str, Dialect] = {"harmony": HARMONY, "demo": chat(vocabulary=demo_vocabulary())}
WINDOW = 400
KINDS = ("turn", "turn", "turn", "turn", "call", "call", "thought", "system", "custom", "double")
REQUEST = CreateRequest("p", None, "m", ())


def message(uid: str, role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "id": uid, "role": role, "content": [{"type": kind, "text": text}]}


def items_of(kind: str, at: int, text: str) -> list[dict[str, Any]]:
    """Return the items of a turn that ends with a message of the assistant."""
    call = {"id": f"fc{at}", "call_id": f"c{at}", "name": "f"}
    output = {"type": "function_call_output", "id": f"fo{at}", "call_id": f"c{at}", "output": text}
    asked, answered = [message(f"u{at}", "user", text)], [message(f"a{at}", "assistant", text)]
    thought = {"type": "reasoning", "id": f"r{at}", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}
    function = {"type": "function_call", **call, "arguments": "{}"}
    custom = {"type": "custom_tool_call", **call, "input": text}
    between: dict[str, list[dict[str, Any]]] = {
        "turn": [],
        "call": [thought, function, output],
        "thought": [thought],
        "system": [message(f"s{at}", "system", "A rule.")],
        "custom": [custom, {**output, "type": "custom_tool_call_output"}],
        # Of two outputs of a call the latest counts.
        "double": [function, {**output, "id": f"fp{at}"}, output],
    }
    return [*asked, *between[kind], *answered]


class LongContext:
    """Context of a growing conversation, with the items to skip."""

    def __init__(self, dialect: Dialect, policy: TruncationPolicy) -> None:
        self.prompts = PromptRenderer(ReplayEngine([], max_model_len=WINDOW + 1), dialect, {}, measure=True, project="p")
        self.policy, self.items = policy, list[dict[str, Any]]()
        self.skipped: SkippedItems | None = None

    def before(self, skipped: SkippedItems | None) -> ConversationContext:
        """Return the context as the store reads it; the keys of the items are their places."""
        keys = list(range(len(self.items)))
        if skipped is None:
            return ConversationContext(keys, self.items, "t", "completed")
        assert skipped.matches(keys)
        read = skipped.keys_to_read(keys)
        return ConversationContext(read, [self.items[key] for key in read], "t", "completed", skipped=skipped, all_keys=keys)

    def shorten(
        self, new: Sequence[dict[str, Any]], most: int, skipped: SkippedItems | None
    ) -> tuple[Turn, SkippedItems | None]:
        """Return the turn without the dropped items, and the items that the next turn may skip."""
        before = self.before(skipped)
        request = replace(REQUEST, input=new)
        items = select_new(request, before.items, {}).items
        turn, _ = to_functions(Turn(items=items, today=date(2026, 1, 1)))
        truncation = Truncation(self.prompts, turn, most, self.policy, skipped)
        return asyncio.run(truncation.search())[0], truncation.skippable(before)


@pytest.mark.parametrize("name", DIALECTS)
@given(
    kinds=st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 20)), min_size=30, max_size=60),
    step=st.sampled_from([0.0, 0.125, 0.25]),
    answers=st.lists(st.sampled_from([40, 100]), min_size=1, max_size=3),
)
@settings(max_examples=12, deadline=None)
def test_same_items_are_dropped(name: str, kinds: list[tuple[str, int]], step: float, answers: list[int]) -> None:
    context = LongContext(DIALECTS[name], TruncationPolicy(drops=True, step=step))
    skipped: SkippedItems | None = None
    for at, (kind, words) in enumerate(kinds):
        new, most = [message(f"n{at}", "user", "word " * words)], WINDOW - answers[at % len(answers)]
        whole = Turn(items=[*context.items, *new], today=date(2026, 1, 1))
        if len(context.prompts.dialect.render(to_functions(whole)[0])) > most:
            expected, noted = context.shorten(new, most, None)
            if skipped is not None:
                try:
                    turn, noted = context.shorten(new, most, skipped)
                except NeedsAllItems:
                    skipped = None
                else:
                    assert turn.items == expected.items
            skipped = noted
        context.items += items_of(kind, at, "word " * words)


def plain_context(turns: int) -> LongContext:
    context = LongContext(HARMONY, TruncationPolicy(drops=True, step=0.125))
    for at in range(turns):
        context.items += items_of("call", at, "some words of a turn")
    return context


def test_skipped_items_grow_with_the_conversation() -> None:
    context, new, counts = plain_context(40), [message("n", "user", "Next?")], list[int]()
    _, skipped = context.shorten(new, 300, None)
    for at in count(40):
        assert skipped is not None
        assert len(context.before(skipped).items) < 80
        counts.append(skipped.count)
        if len(counts) == 30:
            break
        context.items += items_of("call", at, "some words of a turn")
        turn, following = context.shorten(new, 300, skipped)
        assert turn.items == context.shorten(new, 300, None)[0].items
        skipped = following
    assert counts == sorted(counts)
    assert counts[-1] - counts[0] >= 100


def test_all_items_are_read_where_skipped_ones_may_count() -> None:
    context = plain_context(60)
    _, skipped = context.shorten([message("n", "user", "Next?")], 300, None)
    assert skipped is not None
    # More space for the prompt, a new call with the id of a skipped one, and an output of a skipped call.
    call = {"type": "function_call", "id": "fcx", "call_id": "c0", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "id": "fox", "call_id": "c0", "output": "late"}
    for new, most in (([message("n", "user", "Next?")], 20_000), ([call, output, message("n", "user", "Next?")], 300)):
        with pytest.raises(NeedsAllItems):
            context.shorten(new, most, skipped)
    with pytest.raises(NeedsAllItems):
        skipping.check_compactions([*context.before(skipped).items, {"type": "compaction", "id": "cmp"}])


class SkippingTest(ConversationCase):
    """Turns over HTTP."""

    async def test_turns_of_a_long_conversation_read_its_newest_items(self) -> None:
        self.engine = ReplayEngine(max_model_len=600)
        async with self.serving(*[record_text(HELLO)] * 10) as client:
            uid = (await self.ask(client, "post", ""))["id"]
            for part in range(6):
                filling = [user(f"Message {part} {at} of a long conversation.") for at in range(20)]
                if part == 0:
                    call = {"type": "function_call", "call_id": "early", "name": "f", "arguments": "{}"}
                    filling[2:4] = [call, {"type": "function_call_output", "call_id": "early", "output": "x"}]
                await self.ask(client, "post", f"/{uid}/items", items=filling)
            previous = await self._turn(client, conversation=uid)
            row = await Conversation.objects.aget(uid=uid)
            noted = skipping.find("m", uid)
            self.assertLess(len((await conversations.context(row, noted)).items), 90)
            self.assertEqual(len((await conversations.context(row)).items), 122)
            with_noted = await self._turn(client, conversation=uid)
            await self._check(with_noted, 122)
            chained = await self._turn(client, previous_response_id=previous)
            await self._check(chained, 122)
            again = await self._turn(client, previous_response_id=previous)
            skipping.remember("m", uid, None)
            self.assertNotEqual(skipping.find("m", uid), noted)
            whole = await self._turn(client, previous_response_id=previous)
            prompts = [list(request.prompt) for request in self.engine.requests]
            self.assertEqual(prompts[-1], prompts[-2])
            self.assertEqual(prompts[-1], prompts[-3])
            self.assertEqual(await self._history(again), await self._history(whole))
            # A turn that reads skipped items would fail.
            first_keys = (await self._history(whole))[:20]
            bodies = dict([pair async for pair in Item.objects.filter(pk__in=first_keys).values_list("pk", "body")])
            await Item.objects.filter(pk__in=first_keys).aupdate(body="damaged")
            await self._turn(client, conversation=uid)
            await self._turn(client, previous_response_id=previous)
            for key, body in bodies.items():
                await Item.objects.filter(pk=key).aupdate(body=body)
            # An item taken out: the noted items are not the first ones any more.
            first = (await self.listed(client, uid, "order=asc&limit=1"))[0]["id"]
            await self.ask(client, "delete", f"/{uid}/items/{first}")
            noted = skipping.find("m", uid)
            self.assertEqual(len((await conversations.context(row, noted)).items), 125)
            await self._turn(client, conversation=uid)
            # A wrong request gets the same error.
            answer = await self._post(client, conversation=uid, input=[{"type": "item_reference", "id": "msg_none"}])
            self.assertEqual(answer.status_code, 404)
            output = {"type": "function_call_output", "call_id": "none", "output": "x"}
            answer = await self._post(client, conversation=uid, input=[output])
            self.assertIn(b"No tool call found", answer.content)
            await self._turn(client, conversation=uid)
            # An output of a skipped call is no error: everything is read.
            noted = skipping.find("m", uid)
            self.assertIn(hash("early"), [] if noted is None else noted.calls)
            await self._turn(client, conversation=uid, input=[{**output, "call_id": "early"}])

    async def _turn(self, client: Any, **fields: Any) -> str:
        answer = await self._post(client, **fields)
        self.assertEqual(answer.status_code, 200, answer.content)
        return str(answer.json()["id"])

    async def _post(self, client: Any, **fields: Any) -> Any:
        body = {"model": "m", "input": "And then?", "truncation": "auto", "max_output_tokens": 100, **fields}
        return await client.post("/v1/responses", body, content_type="application/json")

    async def _check(self, uid: str, items: int) -> None:
        self.assertEqual(len(await self._history(uid)), items)

    async def _history(self, uid: str) -> list[int]:
        row = await sync_to_async(Response.objects.get)(uid=uid)
        return list(row.history)
