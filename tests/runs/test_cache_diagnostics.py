"""`prompt_cache_diagnostics`: pairs of requests with a single difference, rendered by the templates of the demo models."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from datetime import date
from itertools import takewhile
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from responses_app.dialects.base import Turn
from responses_app.dialects.chat.dialect import ChatDialect
from responses_app.engines.replay.engine import Recording, Tokens
from responses_app.installation.data_dir import ROOT
from responses_app.models import ApiKey, StoredRequest
from responses_app.runs.cache_diagnostics.comparison import BLOCK_TOKENS, PromptRecord, compare
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.manager import RunManager
from responses_app.runs.models import ServedModel
from tests.support.api.case import HARMONY, HELLO, ApiCase, KeyedClient, record_text
from tests.support.dialects.open_dialect import open_dialect

TURNS = (2, 6)
SENTENCE = "The quick brown fox jumps over the lazy dog while seventeen turtles read long letters to their patient aunts."
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
HIT = "cache_hit"

Body = dict[str, Any]


def tool(name: str, text: str = SENTENCE) -> Body:
    return {"type": "function", "name": name, "description": text, "parameters": SCHEMA, "strict": True}


def message(role: str, text: str) -> Body:
    return {"type": "message", "role": role, "content": text}


def conversation(turns: int) -> Body:
    """Return the earlier request of a pair."""
    items = [message(role, f"{role} {turn}: {SENTENCE}") for turn in range(turns) for role in ("user", "assistant")]
    return {
        "instructions": f"Answer briefly. {SENTENCE} {SENTENCE}",
        "tools": [tool("first"), tool("second"), tool("third")],
        "reasoning": {"effort": "medium"},
        "prompt_cache_key": "key",
        "input": [*items, message("user", f"What now? {SENTENCE}")],
    }


def edited(field: str, value: Any) -> Callable[[Body], None]:
    return lambda body: body.update({field: value})


def tools(change: Callable[[list[Body]], object]) -> Callable[[Body], None]:
    def apply(body: Body) -> None:
        change(body["tools"])

    return apply


def items(change: Callable[[list[Body]], object]) -> Callable[[Body], None]:
    def apply(body: Body) -> None:
        change(body["input"])

    return apply


# Name -> change of the later request, and the reason that the API has for it.
CHANGES: dict[str, tuple[Callable[[Body], object], str]] = {
    "nothing": (lambda _: None, HIT),
    "tool added": (tools(lambda given: given.append(tool("fourth"))), "tools_changed"),
    "tool added first": (tools(lambda given: given.insert(0, tool("fourth"))), "tools_changed"),
    "tool removed": (tools(lambda given: given.pop()), "tools_changed"),
    "all tools removed": (tools(lambda given: given.clear()), "tools_changed"),
    "tool described otherwise": (tools(lambda given: given[1].update(description="Other words.")), "tools_changed"),
    "tool renamed": (tools(lambda given: given[0].update(name="zeroth")), "tools_changed"),
    "tools in another order": (tools(lambda given: given.reverse()), "tools_changed"),
    "instructions replaced": (edited("instructions", "You are a pirate."), "input_changed"),
    "instructions removed": (edited("instructions", None), "input_changed"),
    "instructions with a clock": (lambda body: body.update(instructions="12:01 " + body["instructions"]), "input_changed"),
    "first message edited": (items(lambda given: given[0].update(content="Edited.")), "input_changed"),
    "answer edited": (items(lambda given: given[1].update(content="Edited.")), "input_changed"),
    "last message edited": (items(lambda given: given[-3].update(content="Edited.")), "input_changed"),
    "first message removed": (items(lambda given: given.pop(0)), "input_changed"),
    "second turn removed": (items(lambda given: given.pop(2)), "input_changed"),
    "message inserted": (items(lambda given: given.insert(1, message("user", "Inserted."))), "input_changed"),
    "message replaced by a call": (
        items(
            lambda given: given.__setitem__(
                slice(1, 2),
                [
                    {"type": "function_call", "name": "first", "arguments": '{"a":"b"}', "call_id": "c"},
                    {"type": "function_call_output", "call_id": "c", "output": "d"},
                ],
            )
        ),
        "input_changed",
    ),
    "cache key changed": (edited("prompt_cache_key", "other"), "prompt_cache_key_changed"),
    "cache key removed": (edited("prompt_cache_key", None), "prompt_cache_key_changed"),
    "model changed": (edited("model", "n"), "model_changed"),
    "verbosity changed": (edited("text", {"verbosity": "high"}), HIT),
    "service tier changed": (edited("service_tier", "flex"), HIT),
    "temperature changed": (edited("temperature", 0.1), HIT),
    "metadata changed": (edited("metadata", {"a": "b"}), HIT),
}
# Changes that only one of the two templates shows.
HARMONY_CHANGES: dict[str, tuple[Callable[[Body], object], str]] = {
    "effort raised": (edited("reasoning", {"effort": "high"}), "reasoning_effort_changed"),
    "effort lowered": (edited("reasoning", {"effort": "low"}), "reasoning_effort_changed"),
    "format changed": (
        edited("text", {"format": {"type": "json_schema", "name": "x", "schema": SCHEMA, "strict": True}}),
        "text_format_changed",
    ),
}


class DiagnosticsCases(ApiCase):
    """Pairs of requests; the subclasses have the dialects."""

    __test__ = False

    def record(self, cached: int | None) -> Recording:
        return record_text(HELLO, cached=cached)

    def new_hub(self) -> RunManager:
        return RunManager({name: ServedModel(name, self.engine, "", {}, dialect=self.dialect) for name in ("m", "n")})

    async def pair(self, client: KeyedClient, turns: int, change: Callable[[Body], object], **later: Any) -> Body:
        """Make the earlier response and the later with a single change. Return the diagnostics of the later."""
        body = conversation(turns)
        earlier = await self.made(client, **body)
        body = deepcopy(body)
        body["input"] += [message("assistant", "Hello there!"), message("user", "Go on.")]
        change(body)
        options = {"comparison_response_id": earlier["id"]}
        made = await self.made(client, **{**body, **later}, prompt_cache_options=options)
        diagnostics: Body = made["prompt_cache_diagnostics"]
        return diagnostics

    async def check(self, changes: dict[str, tuple[Callable[[Body], object], str]]) -> None:
        recordings = [self.record(cached) for _ in changes for _ in TURNS for cached in (0, BLOCK_TOKENS)]
        async with self.serving(*recordings) as client:
            for turns in TURNS:
                for name, (change, reason) in changes.items():
                    with self.subTest(name=name, turns=turns):
                        self.assertEqual(await self.pair(client, turns, change), self.expected(reason), name)

    def expected(self, reason: str) -> Body:
        """Return the diagnostics with the tokens of the last two prompts that the engine got."""
        if reason == HIT:
            return {"type": HIT}
        old, new = (request.prompt for request in self.engine.requests[-2:])
        shared = len([*takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False))])
        reusable = 0 if reason in ("model_changed", "prompt_cache_key_changed") else shared
        cached = max(reusable // BLOCK_TOKENS, 1)
        missed = min(len(old), len(new) - 1) // BLOCK_TOKENS - cached
        self.assertGreater(missed, 0)
        numbers = {"cache_missed_tokens": missed * BLOCK_TOKENS, "comparison_reusable_tokens": reusable}
        return {"type": "cache_miss", "reason": reason, **numbers}


class HarmonyDiagnosticsTest(DiagnosticsCases):
    __test__ = True

    @pytest.mark.slow
    async def test_each_single_change_has_its_reason(self) -> None:
        await self.check({**CHANGES, **HARMONY_CHANGES})

    async def test_without_the_option_there_is_no_diagnosis(self) -> None:
        async with self.serving(self.record(0)) as client:
            self.assertNotIn("prompt_cache_diagnostics", await self.made(client))

    async def test_a_stream_has_it_in_the_last_event_and_get_returns_it(self) -> None:
        async with self.serving(self.record(0), self.record(16)) as client:
            earlier = await self.made(client)
            events = await self.stream(client, prompt_cache_options={"comparison_response_id": earlier["id"]})
            self.assertNotIn("prompt_cache_diagnostics", events[0]["response"])
            self.assertEqual(events[-1]["response"]["prompt_cache_diagnostics"], {"type": HIT})
            stored = await client.get(f"/v1/responses/{events[-1]['response']['id']}")
            self.assertEqual(stored.json()["prompt_cache_diagnostics"], {"type": HIT})

    async def test_a_response_that_continues_another_shares_its_prompt(self) -> None:
        async with self.serving(self.record(0), self.record(16)) as client:
            earlier = await self.made(client, input=SENTENCE * 3)
            options = {"comparison_response_id": earlier["id"]}
            made = await self.made(client, previous_response_id=earlier["id"], prompt_cache_options=options)
        self.assertEqual(made["prompt_cache_diagnostics"], {"type": HIT})

    async def test_a_response_of_another_project_is_not_found(self) -> None:
        _, secret = await sync_to_async(ApiKey.make)("other")
        async with self.serving(*(self.record(0) for _ in range(3))) as client:
            foreign = await self.made(KeyedClient(secret))
            for uid in (foreign["id"], "resp_\0"):
                made = await self.made(client, prompt_cache_options={"comparison_response_id": uid})
                self.assertEqual(made["prompt_cache_diagnostics"], {"type": "comparison_response_not_found"})

    async def test_a_prompt_that_the_engine_has_not_cached_or_nobody_stored_is_unavailable(self) -> None:
        async with self.serving(*(self.record(0) for _ in range(3))) as client:
            earlier = await self.made(client)
            options = {"comparison_response_id": earlier["id"]}
            for _ in range(2):
                made = await self.made(client, prompt_cache_options=options)
                self.assertEqual(made["prompt_cache_diagnostics"], {"type": "unavailable"})
                await StoredRequest.objects.all().adelete()

    async def test_a_compaction_is_named(self) -> None:
        async with self.serving(*(self.record(16) for _ in range(3))) as client:
            body = conversation(2)
            earlier = await self.made(client, **body)
            answer = await client.post(
                "/v1/responses/compact", {"model": "m", "input": body["input"]}, content_type="application/json"
            )
            body["input"] = [*answer.json()["output"], message("user", "Go on.")]
            made = await self.made(client, **body, prompt_cache_options={"comparison_response_id": earlier["id"]})
        self.assertEqual(made["prompt_cache_diagnostics"]["reason"], "context_compacted")


@pytest.mark.engine
class ChatDiagnosticsTest(DiagnosticsCases):
    """With the template and the tokenizer of demo-chat."""

    __test__ = True

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.dialect = open_dialect(str(ROOT / "responses_app/demo/chat_files"))

    def record(self, cached: int | None) -> Recording:
        assert isinstance(self.dialect, ChatDialect)
        return Recording([Tokens(self.dialect.vocabulary.encode("Hello there!<|im_end|>"))], cached=cached)

    @pytest.mark.slow
    async def test_each_single_change_has_its_reason(self) -> None:
        await self.check(CHANGES)


def prompt_record(
    items: list[Body], day: date = date(2026, 11, 24), answer: list[Body] | None = None, **fields: Any
) -> PromptRecord:
    """Return the record of a prompt in harmony, with the answer in the prompt, as in a further round."""
    request = CreateRequest("test", None, "m", (), **fields)
    prompt = HARMONY.render(Turn([*items, *(answer or [])], day, request.instructions))
    return PromptRecord("m", request, items, prompt, day, answer or [])


USER = {"id": "a", "type": "message", "role": "user", "content": [{"type": "input_text", "text": SENTENCE}]}
NEXT = {"id": "b", "type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go on."}]}


def test_a_new_date_is_named() -> None:
    result = compare(prompt_record([USER]), prompt_record([USER, NEXT], date(2026, 11, 25)), 0, HARMONY.token_text)
    assert [change.reason for change in result.changes] == ["input_changed"]
    assert result.changes[0].text == "The date in the prompt changed from 2026-11-24 to 2026-11-25."


def test_omitted_reasoning_is_named() -> None:
    thought: Body = {
        "id": "c",
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "Think. " * 40}],
    }
    call: Body = {"id": "d", "type": "function_call", "name": "f", "arguments": "{}", "call_id": "e"}
    output: Body = {"id": "g", "type": "function_call_output", "call_id": "e", "output": "Sunny."}
    final = {"id": "h", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is sunny."}]}
    answer: list[Body] = [thought, call, output]
    result = compare(prompt_record([USER], answer=answer), prompt_record([USER, *answer, final, NEXT]), 0, HARMONY.token_text)
    assert [change.text for change in result.changes] == ["The template omits the reasoning of earlier turns."]
    assert result.missed > 0


def test_answer_of_a_single_round_is_no_part_of_the_prompt() -> None:
    final: Body = {"id": "h", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Sunny."}]}
    earlier = replace(prompt_record([USER], instructions="A"), answer=[final], is_single_round=True)
    result = compare(earlier, prompt_record([USER], instructions="B"), 0)
    assert [change.text for change in result.changes] == ["instructions changed."]


def test_another_template_is_the_reason_where_the_requests_agree() -> None:
    earlier, later = prompt_record([USER]), prompt_record([USER, NEXT])
    result = compare(replace(earlier, prompt=[0, *earlier.prompt]), later, 0, HARMONY.token_text)
    assert [change.reason for change in result.changes] == ["model_changed"]
    assert "template" in result.changes[0].text


def test_without_a_tokenizer_the_numbers_are_the_same() -> None:
    earlier, later = prompt_record([USER]), prompt_record([USER, NEXT], date(2026, 11, 25))
    blind, read = compare(earlier, later, 0), compare(earlier, later, 0, HARMONY.token_text)
    assert (blind.shared, blind.missed) == (read.shared, read.missed)
    assert blind.changes


def test_tokens_cached_of_another_request_are_not_missed() -> None:
    earlier, later = prompt_record([USER], instructions="A"), prompt_record([USER, NEXT], instructions="B")
    assert compare(earlier, later, 0).missed == compare(earlier, later, 80).missed + BLOCK_TOKENS > BLOCK_TOKENS
    assert compare(earlier, later, len(later.prompt)).missed == 0
