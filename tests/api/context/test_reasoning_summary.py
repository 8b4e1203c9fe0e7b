"""Summaries of reasoning: streamed where a request asks, off by a setting, and rendered to the next prompt once."""

from __future__ import annotations

from typing import Any

from django.test import override_settings

from tests.support.api.case import ENCODING, HELLO, THOUGHT, TOOL, WEATHER, ApiCase, record_text

ASK: dict[str, Any] = {"reasoning": {"summary": "auto"}}
TEXT, NEED = "They greet me.", "I need the tool."


class ReasoningSummaryTest(ApiCase):
    """With a scripted engine and the real database."""

    def prompt(self) -> str:
        text: str = ENCODING.decode_utf8(list(self.engine.requests[-1].prompt))
        return text

    async def test_summary_is_streamed_and_stored_where_a_request_asks(self) -> None:
        async with self.serving(*[record_text(THOUGHT)] * 4) as client:
            for summary in ("auto", "concise", "detailed"):
                events = await self.stream(client, reasoning={"summary": summary})
                deltas = [event["delta"] for event in events if event["type"] == "response.reasoning_summary_text.delta"]
                self.assertEqual("".join(deltas), TEXT)
                self.assertGreater(len(deltas), 1)
                thought = events[-1]["response"]["output"][0]
                self.assertEqual(thought["summary"], [{"type": "summary_text", "text": TEXT}])
                self.assertEqual(thought["content"], [{"type": "reasoning_text", "text": TEXT}])
            self.assertEqual((await self.made(client))["output"][0]["summary"], [])

    async def test_setting_turns_summaries_off(self) -> None:
        async with self.serving(record_text(THOUGHT)) as client:
            with override_settings(RESPONSES_REASONING_SUMMARY="none"):
                response = await self.made(client, **ASK)
            self.assertEqual((response["output"][0]["summary"], response["reasoning"]["summary"]), ([], None))

    async def test_prompt_has_the_reasoning_once(self) -> None:
        output = {"type": "function_call_output", "output": "sunny"}
        async with self.serving(record_text(WEATHER), *[record_text(HELLO)] * 5) as client:
            first = await self.made(client, tools=[TOOL], include=["reasoning.encrypted_content"], **ASK)
            thought, call = first["output"]
            answer = {**output, "call_id": call["call_id"]}
            sealed = {key: thought[key] for key in ("type", "summary", "encrypted_content")}
            shown = {key: thought[key] for key in ("type", "summary")}
            for reasoning_form in (thought, sealed, shown, {**sealed, "content": None}):
                await self.made(
                    client, tools=[TOOL], store=False, input=[{"role": "user", "content": "Hi"}, reasoning_form, call, answer]
                )
                self.assertEqual(self.prompt().count(NEED), 1, reasoning_form)
            await self.made(client, tools=[TOOL], input=[answer], previous_response_id=first["id"])
            self.assertEqual(self.prompt().count(NEED), 1)
