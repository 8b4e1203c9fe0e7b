"""Good requests with a few things changed at random: every answer is a proper one, none is our fault, and a refused one leaves nothing."""

from __future__ import annotations

import copy
import gzip
from collections.abc import Callable
from random import Random
from typing import Any

import orjson
from django.test import AsyncClient

from responses_app.engines.replay.engine import ReplayEngine
from responses_app.models import Conversation, Event, Item, Response
from responses_app.runs import manager
from responses_app.runs.manager import RunManager
from responses_app.runs.models import ServedModel
from tests.support.api.case import HARMONY, HELLO, TOOL, ApiCase, KeyedClient, said

REQUESTS = 800
ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        0,
        -1,
        1,
        3.5,
        1e308,
        2**53,
        2**64 - 1,
        "",
        " ",
        "\0",
        "x",
        "auto",
        "none",
        "m",
        "é" * 70,
        "\U0001f600",
        "a" * 5000,
    ),
    *(
        [],
        [None],
        [[]],
        ["x"],
        {},
        {"": 0},
        {"type": "x"},
        {"type": None},
        [{"type": "message"}],
        {"id": "msg_1"},
        "resp_1",
        "msg_1",
    ),
    *(
        "call_1",
        "function",
        "user",
        "input_text",
        "../..",
        "%00",
        "{}",
        "null",
        "completed",
        "2026-01-01",
        {"$ref": "#"},
        ["null"],
    ),
)
TEXT = {"type": "input_text", "text": "Hi"}
SHELL_CALL = {"type": "shell_call", "call_id": "c2", "action": {"commands": ["ls"], "timeout_ms": 5}}
SHELL_OUTPUT = {
    "type": "shell_call_output",
    "call_id": "c2",
    "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
}
HOSTED: list[dict[str, Any]] = [
    {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q", "sources": [{"url": "u"}]}},
    {"type": "file_search_call", "queries": ["q"], "results": [{"file_id": "f", "text": "t", "score": 0.5}]},
    {"type": "code_interpreter_call", "code": "1", "container_id": "c", "outputs": [{"type": "logs", "logs": "1"}]},
    {"type": "image_generation_call", "result": "AAAA", "revised_prompt": "p"},
    {"type": "mcp_list_tools", "server_label": "s", "tools": [{"name": "f", "input_schema": {}}]},
    {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "f", "arguments": "{}"},
    {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": False, "reason": "r"},
    {"type": "mcp_call", "server_label": "s", "name": "f", "arguments": "{}", "output": "o", "error": {"type": "http_error"}},
    {"type": "program", "call_id": "p1", "code": "c", "fingerprint": "f"},
    {"type": "program_output", "call_id": "p1", "result": "r", "status": "completed"},
    {"type": "tool_search_call", "execution": "server", "arguments": {"a": 1}},
    {"type": "tool_search_output", "execution": "server", "tools": [TOOL]},
]
SEARCH = {"type": "tool_search", "execution": "client", "parameters": {"type": "object"}}
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": 'start: "a"+'}
FORM = {"type": "json_schema", "name": "n", "strict": True, "schema": TOOL["parameters"]}
GOOD: tuple[dict[str, Any], ...] = (
    {"model": "m", "input": "Hi"},
    {
        "model": "m",
        "input": [{"role": "user", "content": [TEXT]}],
        "stream": True,
        "stream_options": {"include_obfuscation": True},
    },
    {"model": "m", "input": "Hi", "tools": [TOOL], "tool_choice": {"type": "function", "name": "get_weather"}, "store": False},
    {
        "model": "m",
        "input": [
            {"type": "message", "role": "developer", "content": "Be kind.", "phase": None},
            {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]},
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}", "status": "completed"},
            {"type": "function_call_output", "call_id": "c1", "output": [TEXT]},
            SHELL_CALL,
            SHELL_OUTPUT,
            {"role": "assistant", "content": [{"type": "output_text", "text": "Yes.", "annotations": [], "logprobs": []}]},
            {"role": "user", "content": "Go on."},
        ],
        "instructions": "Be brief.",
        "metadata": {"a": "b"},
    },
    {"model": "m", "input": [*HOSTED, {"role": "user", "content": "Go on."}]},
    {
        "model": "m",
        "input": "Hi",
        "tools": [
            {"type": "custom", "name": "t", "format": GRAMMAR},
            {"type": "shell", "environment": {"type": "local"}},
            {"type": "apply_patch"},
            {"type": "namespace", "name": "crm", "description": "d", "tools": [{**TOOL, "defer_loading": True}]},
            SEARCH,
        ],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "custom", "name": "t"}]},
        "parallel_tool_calls": False,
    },
    {
        "model": "m",
        "input": "Give me JSON.",
        "text": {"format": FORM, "verbosity": "low"},
        "reasoning": {"effort": "low", "summary": "auto"},
        "temperature": 0.5,
        "top_p": 0.9,
        "max_output_tokens": 64,
        "top_logprobs": 2,
        "include": ["message.output_text.logprobs", "reasoning.encrypted_content"],
        "truncation": "auto",
        "stop": ["END"],
        "service_tier": "flex",
        "prompt_cache_key": "k",
        "safety_identifier": "s",
        "user": "u",
        "context_management": [{"type": "compaction", "compact_threshold": 5000}],
    },
)
THREAD = {"items": [{"role": "user", "content": "Hi"}], "metadata": {"a": "b"}}
PATHS = (
    "/v1/responses",
    "/v1/responses",
    "/v1/responses",
    "/openresponses/v1/responses",
    "/v1/responses/input_tokens",
    "/v1/responses/compact",
    "/v1/conversations",
    "/v1/conversations/{0}",
    "/v1/conversations/{0}/items",
)
QUERIES = (
    "limit",
    "after",
    "order",
    "stream",
    "starting_after",
    "include[]",
    "include",
    "model",
    "status",
    "metadata",
    "created_after",
)
READ = (
    "/v1/responses",
    "/openresponses/v1/responses",
    "/v1/responses/{0}",
    "/v1/responses/{0}/input_items",
    "/v1/models",
    "/v1/models/{0}",
    "/v1/conversations/{0}",
    "/v1/conversations/{0}/items",
    "/v1/conversations/{1}/items/{0}",
)
METHODS = ("PUT", "PATCH", "DELETE", "OPTIONS")
# What may become of the bytes of a body on their way, or before.
SPOILED: tuple[Callable[[Random, bytes], bytes], ...] = (
    lambda r, raw: raw[: r.randrange(len(raw))],
    lambda _, raw: raw.decode().encode("utf-16"),
    lambda _, raw: b"\xef\xbb\xbf" + raw,
    lambda _, raw: raw[:-1] + b',"model":5,"input":"again"}',
    lambda _, raw: raw.replace(b'"Hi"', b'"\\ud800"'),
    lambda _, raw: raw.replace(b'"m"', b"1e400"),
    lambda _, raw: raw.replace(b"0.5", b"1" + b"0" * 5000),
    lambda r, _: b"[" * r.choice([5, 200, 100_000]),
    lambda _, raw: gzip.compress(raw),
)


NEW = ("zzz", "id", "type", "status", "name", "strict", "call_id", "background", "conversation", "async", "defer_loading")


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    found = [path] if path else []
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return found + [place for key in keys for place in places(value[key], (*path, key))]


def changed(r: Random, body: dict[str, Any]) -> dict[str, Any]:
    """One to three changes somewhere in the body."""
    made = copy.deepcopy(body)
    for _ in range(r.choice([1, 1, 1, 2, 3])):
        where = places(made)
        if not where:
            break
        path = r.choice(where)
        spot: Any = made
        for key in path[:-1]:
            spot = spot[key]
        r.choice(CHANGES)(r, spot, path[-1])
    return made


def _set(r: Random, spot: Any, key: Any) -> None:
    spot[key] = copy.deepcopy(r.choice(ODD))


def _drop(r: Random, spot: Any, key: Any) -> None:
    del spot[key]


def _wrap(r: Random, spot: Any, key: Any) -> None:
    spot[key] = r.choice(
        [[spot[key]], {"type": spot[key]}, [copy.deepcopy(spot[key]) for _ in range(3)], orjson.dumps(spot[key]).decode()]
    )


def _move(r: Random, spot: Any, key: Any) -> None:
    other = r.choice(list(spot) if isinstance(spot, dict) else range(len(spot)))
    spot[key], spot[other] = spot[other], spot[key]


def _add(r: Random, spot: Any, key: Any) -> None:
    if isinstance(spot, dict):
        spot[r.choice(NEW)] = copy.deepcopy(r.choice(ODD))
    else:
        spot.append(copy.deepcopy(r.choice([*spot, *ODD])))


CHANGES: list[Callable[[Random, Any, Any], None]] = [_set, _set, _set, _drop, _wrap, _move, _add]


class FuzzTest(ApiCase):
    """With a scripted engine that answers as often as it is asked."""

    async def test_every_answer_is_a_proper_one(self) -> None:
        r = Random(20)
        self.engine = ReplayEngine([said(HELLO, size=9)], loop=True)
        manager.set_current(RunManager({"m": ServedModel("m", self.engine, "", {}, dialect=HARMONY)}))
        client = KeyedClient(self.secret)
        uid = (await self.made(client))["id"]
        made = await client.post("/v1/conversations", orjson.dumps(THREAD), content_type="application/json")
        self.thread = orjson.loads(made.content)["id"]
        try:
            for n in range(REQUESTS):
                await (self._written if n % 5 else self._read)(r, client, uid)
        finally:
            await manager.current().close()
            manager.set_current(None)

    async def _written(self, r: Random, client: AsyncClient, uid: str) -> None:
        path = r.choice(PATHS)
        body = changed(r, self._good(r, path, uid))
        raw = orjson.dumps(body)
        before = await self._rows()
        path = path.format(self.thread)
        response = await client.post(
            path, raw if r.random() < 0.9 else r.choice(SPOILED)(r, raw), content_type="application/json"
        )
        await self._proper(response, (path, body))
        if response.status_code != 200:
            self.assertEqual(await self._rows(), before, (path, body))

    def _good(self, r: Random, path: str, uid: str) -> dict[str, Any]:
        if path.endswith("items"):
            return {"items": r.choice([one for one in GOOD if isinstance(one["input"], list)])["input"][:20]}
        if "conversations" in path:
            return THREAD
        return {
            **r.choice(GOOD),
            **r.choice([{}, {}, {"previous_response_id": uid}, {"conversation": self.thread}, {"store": False}]),
        }

    async def _read(self, r: Random, client: AsyncClient, uid: str) -> None:
        query = {r.choice(QUERIES): str(r.choice(ODD))[:300] for _ in range(r.randint(0, 3))}
        path = r.choice(READ).format(r.choice([uid, uid, self.thread, "resp_0", "conv_1", "m", "%00", "x" * 300]), self.thread)
        await self._proper(await client.get(path, query), (path, query))
        # Nothing that is there is deleted.
        other = r.choice(READ).format("resp_0", "conv_1")
        await self._proper(await client.generic(r.choice(METHODS), other, b"{}", "application/json"), other)

    async def _proper(self, response: Any, asked: object) -> None:
        self.assertLess(response.status_code, 500, (asked, response.content if not response.streaming else ""))
        if response.streaming:
            raw = b"".join([part async for part in response.streaming_content])
            self.assertTrue(raw.endswith(b"data: [DONE]\n\n"), asked)
        elif response.status_code != 200:
            self.assertEqual(set(orjson.loads(response.content)["error"]), {"message", "type", "param", "code"}, asked)

    async def _rows(self) -> list[int]:
        return [await model.objects.acount() for model in (Response, Item, Event, Conversation)]
