"""The table of request fields in docs/api/fields.md, row by row, against one request with the field and one without."""

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
from responses_app.schemas.create_response import REFUSED, CreateResponse
from tests.support.api.case import HELLO, THOUGHT, TOOL, WEATHER, ApiCase, KeyedClient, record_text, sse
from tests.support.doc_tables import table_rows
from tests.support.runs.server_tools import START, TWO_CALLS, CityTools, InOrder, answer, call
from tests.support.waiting import eventually

ID = re.compile(r"\b([a-z]+_)[0-9a-f]{24,}")
TIMES = re.compile(r'"(created_at|completed_at)":\d+')
PADDING = re.compile(r'"obfuscation":"[^"]*"')
USER = {"role": "user", "content": "word " * 100}


@dataclass(frozen=True)
class Probe:
    """Value of a field, the other fields of the request, and what the model generates."""

    value: Any
    others: Mapping[str, Any] = field(default_factory=dict)
    generated: Sequence[str] = (HELLO,)
    max_model_len: int = 131_072
    has_server_tool: bool = False


# Fields whose value names what an earlier request has created.
PREVIOUS, CONVERSATION = "PREVIOUS", "CONVERSATION"
PROBES: Mapping[str, Probe] = {
    "model": Probe("n"),
    "input": Probe("Good bye"),
    "instructions": Probe("Be brief."),
    "stream": Probe(True),
    "stream_options": Probe({"include_obfuscation": False}, {"stream": True}),
    "store": Probe(False),
    "background": Probe(True),
    "background_options": Probe({"completion_window": "2h"}, {"background": True}),
    "previous_response_id": Probe(PREVIOUS),
    "conversation": Probe(CONVERSATION),
    "max_output_tokens": Probe(16),
    "tools": Probe([TOOL]),
    "tool_choice": Probe("required", {"tools": [TOOL]}, (WEATHER,)),
    "parallel_tool_calls": Probe(
        False, {"tools": [TOOL]}, (call("get_weather", "Rome", "<|end|>") + START + call("get_weather", "Oslo"),)
    ),
    "text": Probe({"format": {"type": "json_object"}}, {"input": "Reply in JSON."}),
    "reasoning": Probe({"effort": "high"}),
    "temperature": Probe(0.5),
    "top_p": Probe(0.5),
    "presence_penalty": Probe(0.5),
    "frequency_penalty": Probe(0.5),
    "context_management": Probe([{"type": "compaction", "compact_threshold": 1000}], {"input": [USER] * 20}),
    "top_logprobs": Probe(2),
    "metadata": Probe({"a": "b"}),
    "include": Probe(["reasoning.encrypted_content"], generated=(THOUGHT,)),
    "max_tool_calls": Probe(1, generated=(TWO_CALLS, answer("Done.")), has_server_tool=True),
    "prompt_cache_key": Probe("key"),
    "prompt_cache_retention": Probe("24h"),
    "prompt_cache_options": Probe({"mode": "explicit", "ttl": "30m", "comparison_response_id": "resp_1"}),
    "safety_identifier": Probe("someone"),
    "user": Probe("someone"),
    "service_tier": Probe("flex"),
    "client_metadata": Probe({"a": "b"}),
    "ignore_eos": Probe(True),
    "seed": Probe(7),
    "truncation": Probe("auto", {"input": [USER] * 5}, max_model_len=400),
    "prompt": Probe({"id": "pmpt_1"}),
    "moderation": Probe({"model": "omni-moderation-latest"}),
    "access_programs": Probe({"cyber": "daybreak_red"}),
    "image": Probe({"context_compression": "auto"}),
    "multi_agent": Probe({"enabled": True}),
    "stop": Probe("there"),
    "top_k": Probe(5),
    "min_p": Probe(0.1),
    "repetition_penalty": Probe(1.1),
    "logit_bias": Probe({"7": 1.5}),
}
# What the row says of a part of a field: the kind and the value.
PARTS: Mapping[tuple[str, str], tuple[str, Probe]] = {
    ("stream_options", "include_usage"): ("accepted", Probe({"include_usage": False}, {"stream": True})),
    ("background_options", "continuation_id"): ("accepted", Probe({"continuation_id": "c"}, {"background": True})),
    ("text", "verbosity"): ("echoed", Probe({"verbosity": "low"})),
    ("reasoning", "summary"): ("honoured", Probe({"summary": "auto"}, generated=(THOUGHT,))),
    ("reasoning", "mode"): ("echoed", Probe({"mode": "standard"}, generated=(THOUGHT,))),
    ("prompt_cache_options", "prewarm"): ("refused", Probe({"prewarm": True})),
    ("image", "context_compression"): ("refused", Probe({"context_compression": "enabled"})),
}


@dataclass(frozen=True)
class Observation:
    """Effects of a request: all effects but the field's value in the response, and this value."""

    effects: Mapping[str, Any]
    shown: Any
    error: Mapping[str, Any]


class RequestFieldsTest(ApiCase):
    """The kind of each field: honoured, echoed, accepted or refused."""

    @pytest.mark.slow
    async def test_table_has_the_kind_of_every_field(self) -> None:
        rows = {name: cells[0] for name, cells in table_rows("api/fields.md", "# Fields of a create request").items()}
        self.assertEqual(list(dict.fromkeys([*PROBES, *rows])), list(PROBES), "a row without a probe")
        self.assertEqual(set(rows), set(CreateResponse.model_fields) | set(REFUSED))
        self.assertEqual(set(PROBES), set(rows), "a probe without a row")
        for name, text in rows.items():
            with self.subTest(field=name):
                documented = re.match(r"honoured|echoed|accepted|refused", text)
                self.assertEqual(documented and documented[0], await self._kind(name, PROBES[name]))

    async def test_parts_of_fields_have_the_documented_kind(self) -> None:
        rows = table_rows("api/fields.md", "# Fields of a create request")
        for (name, part), (kind, probe) in PARTS.items():
            with self.subTest(field=name, part=part):
                self.assertIn(f"`{part}`", rows[name][0])
                self.assertEqual(await self._kind(name, probe, part), kind)

    async def test_unknown_field_is_refused(self) -> None:
        seen = await self._observe("unheard", Probe(1), {"unheard": 1})
        self.assertEqual((seen.error["code"], seen.error["param"]), ("unknown_parameter", "unheard"))

    async def _kind(self, name: str, probe: Probe, part: str = "") -> str:
        without = await self._observe(name, probe, {})
        present = await self._observe(name, probe, {name: probe.value})
        if present.error.get("code") in ("unsupported_parameter", "unsupported_value"):
            self.assertIn(present.error["param"], (name, f"{name}.{part}"))
            return "refused"
        if present.effects != without.effects:
            self.assertEqual(present.error, {})
            return "honoured"
        shown, value = present.shown, probe.value
        if part:
            shown, value = (shown or {}).get(part), value[part]
        return "echoed" if shown == value else "accepted"

    async def _observe(self, name: str, probe: Probe, fields: Mapping[str, Any]) -> Observation:
        """Send the request of `probe` with `fields`, and return the observed effects."""
        lines = [record_text(text) for text in probe.generated]
        engines = [ReplayEngine(lines, loop=True, max_model_len=probe.max_model_len) for _ in range(2)]
        tools: CityTools | None = InOrder() if probe.has_server_tool else None
        models = {uid: ServedModel(uid, one, "", {}, dialect=self.dialect) for uid, one in zip("mn", engines, strict=True)}
        hub = RunManager(models, tools_for=lambda request, uid: tools)
        manager.set_current(hub)
        try:
            client = KeyedClient(self.secret)
            created = (
                {PREVIOUS: (await self.made(client))["id"], CONVERSATION: await self._conversation(client)}
                if _refers(fields)
                else {}
            )
            for engine in engines:
                engine.requests.clear()
            body = {**probe.others, **{key: created.get(str(value), value) for key, value in fields.items()}}
            return await self._send(client, name, body, engines)
        finally:
            await hub.close()
            manager.set_current(None)

    async def _send(
        self, client: KeyedClient, name: str, body: Mapping[str, Any], engines: Sequence[ReplayEngine]
    ) -> Observation:
        response = await self.post(client, **body)
        kind, events = response["content-type"], list[dict[str, Any]]()
        if response.streaming:
            raw = b"".join([part async for part in response.streaming_content])
            events = sse(raw)
            answered: dict[str, Any] = events[-1]["response"]
        else:
            answered = orjson.loads(response.content)
        if answered.get("background"):
            await eventually(lambda: any(engine.requests for engine in engines))
        uid = answered.get("id", "none")
        stored = (await client.get(f"/v1/responses/{uid}")).status_code
        requests = [
            [repr(replace(one, id="", session="", request_id="", traceparent="")) for one in engine.requests]
            for engine in engines
        ]
        effects = {
            "status": (response.status_code, kind, stored),
            "requests": requests,
            "response": _plain({key: value for key, value in answered.items() if key != name}),
            "events": [_plain({key: value for key, value in event.items() if key != "response"}) for event in events],
        }
        return Observation(effects, answered.get(name), answered.get("error") or {})

    async def _conversation(self, client: KeyedClient) -> str:
        items = [{"type": "message", "role": "user", "content": "Earlier"}]
        made = await client.post("/v1/conversations", orjson.dumps({"items": items}), content_type="application/json")
        return str(orjson.loads(made.content)["id"])


def _refers(fields: Mapping[str, Any]) -> bool:
    return any(value in (PREVIOUS, CONVERSATION) for value in fields.values())


def _plain(value: Any) -> str:
    """Return JSON without ids, times and padding."""
    text = ID.sub(r"\1", orjson.dumps(value).decode())
    return PADDING.sub('"obfuscation":""', TIMES.sub("", text))
