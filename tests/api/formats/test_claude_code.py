"""Requests of Claude Code 2.1.332, shortened, and the errors from which it goes on by itself."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import orjson
from django.test import AsyncClient, override_settings

from tests.support.api.case import THOUGHT, ApiCase, record_text
from tests.support.api_formats import anthropic_types
from tests.support.web_search.pages_folder import write_pages

BETAS = (
    "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,mid-conversation-tool-changes-2026-07-01,"
    "thinking-token-count-2026-05-13,advanced-tool-use-2025-11-20,effort-2025-11-24"
)
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SYSTEM = [
    {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.332.b11; cc_entrypoint=sdk-cli;"},
    {"type": "text", "text": "You are a Claude agent, built on Anthropic's Claude Agent SDK."},
    {"type": "text", "text": "You are an agent.", "cache_control": {"type": "ephemeral"}},
]
USER_ID = {"user_id": '{"device_id":"056b","account_uuid":"","session_id":"e9875ba8-cf8f-43ff-bd62-4aa0ff145654"}'}
READ = {
    "name": "Read",
    "description": "Reads a file.",
    "input_schema": {"type": "object", "properties": {"file_path": {"type": "string"}}},
}
PLACEHOLDER = {
    "name": "DeferredToolPlaceholder",
    "description": "None.",
    "input_schema": {"type": "object"},
    "defer_loading": True,
}
QUESTION = {
    "role": "user",
    "content": [{"type": "text", "text": "<system-reminder>\nBe brief.\n</system-reminder>"}, {"type": "text", "text": "Hi"}],
}
ENVIRONMENT = {"role": "system", "content": [{"type": "text", "text": "# Environment", "cache_control": {"type": "ephemeral"}}]}
BODY: dict[str, Any] = {
    "model": "m",
    "messages": [QUESTION, ENVIRONMENT],
    "system": SYSTEM,
    "tools": [READ, PLACEHOLDER],
    "metadata": USER_ID,
    "max_tokens": 8192,
    "thinking": {"type": "adaptive", "display": "omitted", "block_binding": {"prefix_mismatch_behavior": "drop_block"}},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "output_config": {"effort": "high"},
    "stream": True,
}
# What the tool WebSearch of Claude Code asks for.
SEARCH_BODY: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": [{"type": "text", "text": "Perform a web search for the query: tides"}]}],
    "system": [*SYSTEM[:2], {"type": "text", "text": "You run a web search for another Claude model."}],
    "tools": [{"type": "web_search_20250305", "name": "web_search", "blocked_domains": ["tides.example"], "max_uses": 8}],
    "tool_choice": {"type": "auto"},
    "metadata": USER_ID,
    "max_tokens": 8192,
    "output_config": {"effort": "high"},
    "stream": True,
}


class ClaudeCodeTest(ApiCase):
    """Requests with the headers of Claude Code."""

    async def send(self, client: AsyncClient, body: dict[str, Any]) -> Any:
        """POST a body as Claude Code does."""
        headers = {"anthropic-version": "2023-06-01", "anthropic-beta": BETAS, "x-app": "cli"}
        return await client.post("/v1/messages?beta=true", orjson.dumps(body), content_type="application/json", headers=headers)

    async def text(self, client: AsyncClient, body: dict[str, Any]) -> str:
        """Return the text of a stream, whose events the anthropic package accepts."""
        response = await self.send(client, body)
        self.assertEqual(response.status_code, 200, getattr(response, "content", b""))
        stream = b"".join([part async for part in response.streaming_content])
        events = [line.removeprefix(b"data: ") for line in stream.splitlines() if line.startswith(b"data: ")]
        for event in events:
            anthropic_types.validate("RawMessageStreamEvent", event)
        deltas = [orjson.loads(event).get("delta", {}) for event in events]
        return "".join(delta["text"] for delta in deltas if delta.get("type") == "text_delta")

    async def error(self, client: AsyncClient, body: dict[str, Any]) -> str:
        """Return the message of a 400."""
        response = await self.send(client, body)
        self.assertEqual(response.status_code, 400, getattr(response, "content", b""))
        message: str = orjson.loads(response.content)["error"]["message"]
        return message

    async def test_a_plain_question_is_answered(self) -> None:
        async with self.serving(record_text(THOUGHT)) as client:
            self.assertEqual(await self.text(client, BODY), "Hello there!")

    async def test_the_search_is_accepted(self) -> None:
        folder = write_pages(Path(self.enterContext(tempfile.TemporaryDirectory())))
        with override_settings(RESPONSES_WEB_SEARCH={"backend": "folder", "url": f"folder://{folder}"}):
            async with self.serving(record_text(THOUGHT)) as client:
                self.assertEqual(await self.text(client, SEARCH_BODY), "Hello there!")

    async def test_picture_for_a_model_without_vision_can_be_left_out(self) -> None:
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
        call = {"type": "tool_use", "id": "call_1", "name": "Read", "input": {"file_path": "pic.png"}}
        result = {"type": "tool_result", "tool_use_id": "call_1", "content": [image]}
        turns = [QUESTION, ENVIRONMENT, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
        async with self.serving() as client:
            message = await self.error(client, {**BODY, "messages": turns})
        # Claude Code looks for these words in any case.
        self.assertIn("Could not process image", message)
        self.assertIn("'messages[3].content[0].content[0]': this model takes text only", message)

    async def test_conversation_that_is_too_long_can_be_compacted(self) -> None:
        long = {"role": "user", "content": "word " * 200_000}
        async with self.serving() as client:
            message = await self.error(client, {**BODY, "messages": [long]})
        self.assertRegex(message, r"^prompt is too long: \d{6} tokens > 131072 maximum$")

    async def test_effort_of_a_system_message_holds(self) -> None:
        turn = {**ENVIRONMENT, "output_config": {"effort": "low"}}
        async with self.serving(*[record_text(THOUGHT)] * 2) as client:
            await self.text(client, {**BODY, "messages": [QUESTION, turn]})
            await self.text(client, {**BODY, "output_config": {"effort": "low"}})
            first, second = self.engine.requests
            self.assertEqual(first.prompt, second.prompt)
            user = {**QUESTION, "output_config": {"effort": "low"}}
            self.assertIn("messages[0].output_config", await self.error(client, {**BODY, "messages": [user]}))

    async def test_effort_that_the_model_does_not_have_is_named(self) -> None:
        async with self.serving() as client:
            message = await self.error(client, {**BODY, "output_config": {"effort": "max"}})
        self.assertRegex(message, "effort parameter.*output_config.effort.*not supported")
