"""Strategies for good requests with a few changes, and for reads with odd ids and queries.

`resp_of_test` and `conv_of_test` stand for the ids of a stored response and of a conversation.
"""

from __future__ import annotations

import copy
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson
from hypothesis import strategies as st

from tests.support.api.case import TOOL

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
SERVER_ITEMS: list[dict[str, Any]] = [
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
    {"model": "m", "input": [*SERVER_ITEMS, {"role": "user", "content": "Go on."}]},
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
CONVERSATION = {"items": [{"role": "user", "content": "Hi"}], "metadata": {"a": "b"}}
POST_PATHS = (
    "/v1/responses",
    "/openresponses/v1/responses",
    "/v1/responses/input_tokens",
    "/v1/responses/compact",
    "/v1/conversations",
    "/v1/conversations/conv_of_test",
    "/v1/conversations/conv_of_test/items",
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
READ_PATHS = (
    "/v1/responses",
    "/openresponses/v1/responses",
    "/v1/responses/{0}",
    "/v1/responses/{0}/input_items",
    "/v1/models",
    "/v1/models/{0}",
    "/v1/conversations/{0}",
    "/v1/conversations/{0}/items",
    "/v1/conversations/conv_of_test/items/{0}",
)
METHODS = ("PUT", "PATCH", "DELETE", "OPTIONS")
NEW_KEYS = ("zzz", "id", "type", "status", "name", "strict", "call_id", "background", "conversation", "async", "defer_loading")
IDS = ("resp_of_test", "conv_of_test", "resp_0", "conv_1", "m", "%00", "x" * 300)
# What a request of a response may refer to.
CONTEXTS: tuple[dict[str, Any], ...] = (
    {},
    {"previous_response_id": "resp_of_test"},
    {"conversation": "conv_of_test"},
    {"store": False},
)
# Damage to the bytes of a body; the first entry does none.
DAMAGES: tuple[Callable[[bytes], bytes], ...] = (
    lambda raw: raw,
    lambda raw: raw[: len(raw) // 2],
    lambda raw: raw.decode().encode("utf-16"),
    lambda raw: b"\xef\xbb\xbf" + raw,
    lambda raw: raw[:-1] + b',"model":5,"input":"again"}',
    lambda raw: raw.replace(b'"Hi"', b'"\\ud800"'),
    lambda raw: raw.replace(b'"m"', b"1e400"),
    lambda raw: raw.replace(b"0.5", b"1" + b"0" * 5000),
    lambda raw: b"[" * 5,
    lambda raw: b"[" * 100_000,
    gzip.compress,
)

Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True, slots=True)
class Post:
    path: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Read:
    """A GET request, and a request of another method to another path, which finds nothing to change."""

    path: str
    query: dict[str, str]
    method: str
    other_path: str


@st.composite
def posts(draw: Draw) -> Post:
    """Draw a request to an address that takes POST, with one to three changes, rarely damaged on its way."""
    path = draw(st.sampled_from(POST_PATHS))
    body = orjson.dumps(_changed(draw, _good(draw, path)))
    damage = draw(st.sampled_from(DAMAGES)) if draw(st.integers(0, 9)) == 9 else DAMAGES[0]
    return Post(path, damage(body))


@st.composite
def reads(draw: Draw) -> Read:
    """Draw a GET request with odd ids and query parameters."""
    path = draw(st.sampled_from(READ_PATHS)).format(draw(st.sampled_from(IDS)))
    query = draw(
        st.dictionaries(st.sampled_from(QUERIES), st.sampled_from(ODD).map(lambda value: str(value)[:300]), max_size=3)
    )
    other = draw(st.sampled_from(READ_PATHS)).format("resp_0").replace("conv_of_test", "conv_1")
    return Read(path, query, draw(st.sampled_from(METHODS)), other)


def _good(draw: Draw, path: str) -> dict[str, Any]:
    if path.endswith("items"):
        return {"items": draw(st.sampled_from([one for one in GOOD if isinstance(one["input"], list)]))["input"][:20]}
    if "conversations" in path:
        return CONVERSATION
    return {**draw(st.sampled_from(GOOD)), **draw(st.sampled_from(CONTEXTS))}


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    paths = [path] if path else []
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return paths + [place for key in keys for place in _places(value[key], (*path, key))]


def _changed(draw: Draw, body: dict[str, Any]) -> dict[str, Any]:
    changed = copy.deepcopy(body)
    for change in draw(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=3)):
        places = _places(changed)
        if not places:
            break
        *path, key = draw(st.sampled_from(places))
        parent: Any = changed
        for step in path:
            parent = parent[step]
        change(draw, parent, key)
    return changed


def _odd(draw: Draw) -> Any:
    return copy.deepcopy(draw(st.sampled_from(ODD)))


def _set(draw: Draw, parent: Any, key: Any) -> None:
    parent[key] = _odd(draw)


def _drop(_draw: Draw, parent: Any, key: Any) -> None:
    del parent[key]


def _wrap(draw: Draw, parent: Any, key: Any) -> None:
    value = parent[key]
    wrapped = [[value], {"type": value}, [copy.deepcopy(value) for _ in range(3)], orjson.dumps(value).decode()]
    parent[key] = wrapped[draw(st.integers(0, len(wrapped) - 1))]


def _swap(draw: Draw, parent: Any, key: Any) -> None:
    other = draw(st.sampled_from(list(parent) if isinstance(parent, dict) else range(len(parent))))
    parent[key], parent[other] = parent[other], parent[key]


def _add(draw: Draw, parent: Any, _key: Any) -> None:
    if isinstance(parent, dict):
        parent[draw(st.sampled_from(NEW_KEYS))] = _odd(draw)
    else:
        parent.append(_odd(draw) if draw(st.booleans()) else copy.deepcopy(parent[draw(st.integers(0, len(parent) - 1))]))


CHANGES: tuple[Callable[[Draw, Any, Any], None], ...] = (_set, _set, _set, _drop, _wrap, _swap, _add)
