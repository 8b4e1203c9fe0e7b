"""Each row of the field tables in docs/api/chat-completions.md and messages.md, compared by requests with and without the field."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
import pytest

from responses_app.engines.replay.engine import ReplayEngine
from responses_app.runs import manager
from responses_app.runs.manager import RunManager
from responses_app.runs.models import ServedModel
from tests.support.api.case import HELLO, THOUGHT, TOOL, WEATHER, ApiCase, KeyedClient, record_logprobs, record_text
from tests.support.doc_tables import table_rows
from tests.support.runs.server_tools import START, call

# Ids, times and signatures, which differ with each request.
VARYING = re.compile(r'\b((?:chatcmpl|msg|resp|call|req)[-_])[0-9a-f]{24,}|"(?:created|signature|obfuscation)":(?:\d+|"[^"]*")')
CITY = call("get_weather", "Rome", "<|end|>") + START + call("get_weather", "Oslo")
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
FUNCTION = {"type": "function", "function": {key: value for key, value in TOOL.items() if key != "type"}}
CLIENT_TOOL = {"name": "get_weather", "input_schema": TOOL["parameters"]}


@dataclass(frozen=True)
class FieldProbe:
    """Value of a field, the other fields of the request, and the output of the model."""

    value: Any
    others: Mapping[str, Any] = field(default_factory=dict)
    generated: str = HELLO


CHAT: Mapping[str, FieldProbe] = {
    "messages": FieldProbe([{"role": "user", "content": "Good bye"}]),
    "model": FieldProbe("n"),
    "stream": FieldProbe(True),
    "stream_options": FieldProbe({"include_usage": True}, {"stream": True}),
    "store": FieldProbe(True),
    "metadata": FieldProbe({"a": "b"}, {"store": True}),
    "n": FieldProbe(2),
    "max_tokens": FieldProbe(2),
    "max_completion_tokens": FieldProbe(2),
    "tools": FieldProbe([FUNCTION]),
    "tool_choice": FieldProbe("required", {"tools": [FUNCTION]}, WEATHER),
    "parallel_tool_calls": FieldProbe(False, {"tools": [FUNCTION]}, CITY),
    "response_format": FieldProbe({"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}),
    "reasoning_effort": FieldProbe("high"),
    "verbosity": FieldProbe("low"),
    "temperature": FieldProbe(0.5),
    "top_p": FieldProbe(0.5),
    "presence_penalty": FieldProbe(0.5),
    "frequency_penalty": FieldProbe(0.5),
    "seed": FieldProbe(7),
    "stop": FieldProbe("there"),
    "logit_bias": FieldProbe({"7": 1.5}),
    "logprobs": FieldProbe(True),
    "top_logprobs": FieldProbe(1, {"logprobs": True}),
    "modalities": FieldProbe(["text"]),
    "prediction": FieldProbe({"type": "content", "content": "Hello"}),
    "web_search_options": FieldProbe({}),
    "user": FieldProbe("someone"),
    "safety_identifier": FieldProbe("someone"),
    "prompt_cache_key": FieldProbe("key"),
    "prompt_cache_retention": FieldProbe("24h"),
    "prompt_cache_options": FieldProbe({"mode": "explicit", "ttl": "30m"}),
    "service_tier": FieldProbe("flex"),
    "top_k": FieldProbe(5),
    "min_p": FieldProbe(0.1),
    "repetition_penalty": FieldProbe(1.1),
    "ignore_eos": FieldProbe(True),
    # Models in harmony always reason, so this is refused as the effort `none`.
    "chat_template_kwargs": FieldProbe({"enable_thinking": False}),
    "audio": FieldProbe({"voice": "alloy", "format": "wav"}),
    "function_call": FieldProbe("auto"),
    "functions": FieldProbe([{"name": "f"}]),
    "moderation": FieldProbe({"model": "omni-moderation-latest"}),
}
MESSAGES: Mapping[str, FieldProbe] = {
    "model": FieldProbe("n"),
    "messages": FieldProbe([{"role": "user", "content": "Good bye"}]),
    "max_tokens": FieldProbe(2),
    "system": FieldProbe("Be brief."),
    "stream": FieldProbe(True),
    "stop_sequences": FieldProbe(["there"]),
    "temperature": FieldProbe(0.5),
    "top_p": FieldProbe(0.5),
    "top_k": FieldProbe(5),
    "seed": FieldProbe(7),
    "tools": FieldProbe([CLIENT_TOOL]),
    "tool_choice": FieldProbe({"type": "any"}, {"tools": [CLIENT_TOOL]}, WEATHER),
    "thinking": FieldProbe({"type": "adaptive"}, generated=THOUGHT),
    "output_config": FieldProbe({"effort": "high"}),
    "output_format": FieldProbe({"type": "json_schema", "schema": SCHEMA}),
    "mcp_servers": FieldProbe([{"type": "url", "name": "docs", "url": "https://mcp.invalid/mcp"}]),
    "metadata": FieldProbe({"user_id": "someone"}),
    "service_tier": FieldProbe("standard_only"),
    "speed": FieldProbe("fast"),
    "cache_control": FieldProbe({"type": "ephemeral"}),
    "context_management": FieldProbe({"edits": [{"type": "clear_tool_uses_20250919"}]}),
    "inference_geo": FieldProbe("eu"),
    "billing_policy": FieldProbe("a"),
    "compaction": FieldProbe({"enabled": True}),
    "container": FieldProbe("container_1"),
    "diagnostics": FieldProbe({"previous_message_id": "msg_1"}),
    "fallback_credit_token": FieldProbe("a"),
    "fallbacks": FieldProbe([{"model": "n"}]),
    "prefill": FieldProbe("Hello"),
    "thread": FieldProbe({"id": "a"}),
    "user_profile_id": FieldProbe("a"),
    "workspace_id": FieldProbe("a"),
}


@dataclass(frozen=True)
class FieldObservation:
    """Effects of a request, and the message of the error."""

    effects: Mapping[str, Any]
    error: str


@pytest.mark.slow
class FormatFieldsTest(ApiCase):
    """The kind of each field: honoured, accepted or refused."""

    async def test_table_of_chat_completions_has_the_kind_of_every_field(self) -> None:
        await self._compare("chat/completions", "api/chat-completions.md", CHAT)

    async def test_table_of_messages_has_the_kind_of_every_field(self) -> None:
        await self._compare("messages", "api/messages.md", MESSAGES)

    async def _compare(self, path: str, page: str, probes: Mapping[str, FieldProbe]) -> None:
        rows = {name: cells[0] for name, cells in table_rows(page, "## Fields").items()}
        self.assertEqual(set(probes), set(rows))
        for name, text in rows.items():
            with self.subTest(field=name):
                documented = re.match(r"honoured|echoed|accepted|refused", text)
                self.assertEqual(documented and documented[0], await self._kind(path, name, probes[name]))

    async def _kind(self, path: str, name: str, probe: FieldProbe) -> str:
        without = await self._observe(path, probe, {})
        present = await self._observe(path, probe, {name: probe.value})
        if present.error.startswith((f"Unsupported parameter: '{name}'", f"Unsupported value: '{name}'")):
            return "refused"
        return "accepted" if present.effects == without.effects else "honoured"

    async def _observe(self, path: str, probe: FieldProbe, fields: Mapping[str, Any]) -> FieldObservation:
        """Send the request of `probe` with `fields`, and return the observed effects."""
        line = record_logprobs() if probe.generated == HELLO else record_text(probe.generated)
        engines = [ReplayEngine([line], loop=True) for _ in range(2)]
        models = {uid: ServedModel(uid, one, "", {}, dialect=self.dialect) for uid, one in zip("mn", engines, strict=True)}
        hub = RunManager(models)
        manager.set_current(hub)
        try:
            body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], **probe.others, **fields}
            body |= {"max_tokens": 100} if path == "messages" and "max_tokens" not in fields else {}
            return await self._send(path, body, engines)
        finally:
            await hub.close()
            manager.set_current(None)

    async def _send(self, path: str, body: Mapping[str, Any], engines: Sequence[ReplayEngine]) -> FieldObservation:
        client = KeyedClient(self.secret)
        response: Any = await client.post(f"/v1/{path}", orjson.dumps(body), content_type="application/json")
        content = b"".join([part async for part in response.streaming_content]) if response.streaming else response.content
        answered = {} if response.streaming else orjson.loads(content)
        stored = await client.get(f"/v1/{path}/{answered.get('id')}")
        effects = {
            "status": (response.status_code, response["content-type"]),
            "requests": [
                [repr(replace(one, id="", session="", request_id="", traceparent="")) for one in engine.requests]
                for engine in engines
            ],
            "content": VARYING.sub(r"\1", content.decode()),
            "stored": VARYING.sub(r"\1", stored.content.decode()),
        }
        return FieldObservation(effects, (answered.get("error") or {}).get("message", ""))
