"""What tools of another server did, as calls of functions and what they returned: a model knows nothing else of the past.

The tools themselves are not offered. A call of an MCP tool that was denied, or not yet answered, says so in place of an output.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from responses_app.protocol.items.registry import FAMILIES

Json: TypeAlias = Mapping[str, Any]
# The longest name of a function that clients can declare.
LONGEST = 128


def as_calls(items: Sequence[Json]) -> Iterator[Json]:
    """The items, each of a tool of the server as a call and an output; what says nothing to a model is left out."""
    verdicts = {item["approval_request_id"]: item for item in items if item.get("type") == "mcp_approval_response"}
    called = {item.get("approval_request_id") for item in items if item.get("type") == "mcp_call"}
    for item in items:
        if item.get("type") == "mcp_approval_request":
            if item["id"] not in called:
                yield from _pair(item, _mcp_name(item), item["arguments"], _verdict(verdicts.get(item["id"])))
        elif item.get("type") == "program":
            yield _call(item, item["call_id"], "program", _written({"code": item["code"]}))
        elif item.get("type") == "program_output":
            yield _output(item, item["call_id"], item["result"])
        elif item.get("type") in _TOLD:
            name, arguments, output = _TOLD[item["type"]]
            yield from _pair(item, name(item), arguments(item), output(item))
        elif item.get("type") not in _SILENT:
            yield item


def _pair(item: Json, name: str, arguments: str, output: str) -> Iterable[Json]:
    return _call(item, item["id"], name, arguments), _output(item, item["id"], output)


def _call(item: Json, call_id: str, name: str, arguments: str) -> Json:
    return {"type": "function_call", "id": item["id"], "call_id": call_id, "name": name, "arguments": arguments}


def _output(item: Json, call_id: str, output: str) -> Json:
    return {"type": "function_call_output", "id": item["id"], "call_id": call_id, "output": output}


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _given(item: Json, *keys: str) -> str:
    """What the item holds under these keys; if that is nothing, how the call ended."""
    held = {key: item[key] for key in keys if item.get(key)}
    return _written(held or {"status": item.get("status", "completed")})


def _mcp_name(item: Json) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", f"{item['server_label']}__{item['name']}")[:LONGEST]


def _verdict(verdict: Json | None) -> str:
    if verdict is None:
        return "This call was not made: the user has not approved it yet."
    reason = verdict.get("reason")
    return "This call was not made: the user has denied it." + (f" {reason}" if reason else "")


def _printed(output: Json) -> Json:
    return {"type": "image"} if output.get("type") == "image" else output


def _mcp_output(item: Json) -> str:
    return str(item["output"]) if item.get("output") is not None else _given(item, "error")


def _searched(item: Json) -> str:
    """Its sources are what came of a search, not what was asked for."""
    return _written({key: said for key, said in (item.get("action") or {}).items() if key != "sources" and said is not None})


def _sources(item: Json) -> str:
    found = (item.get("action") or {}).get("sources")
    return _given({**item, "sources": found}, "results", "sources")


def _tool(item: Json) -> str:
    return FAMILIES[item["type"]].tool


_Of: TypeAlias = Callable[[Json], str]
# type -> the name of the function that it was, its arguments, its output.
_TOLD: Final[Mapping[str, tuple[_Of, _Of, _Of]]] = {
    "web_search_call": (_tool, _searched, _sources),
    "file_search_call": (
        _tool,
        lambda item: _written({"queries": item["queries"]}),
        lambda item: _given(item, "results"),
    ),
    "code_interpreter_call": (
        _tool,
        lambda item: _written({"code": item.get("code") or ""}),
        lambda item: _given({**item, "outputs": [_printed(one) for one in item.get("outputs") or ()]}, "outputs"),
    ),
    # A picture is too long for any prompt.
    "image_generation_call": (
        _tool,
        lambda item: _written({"prompt": item.get("revised_prompt") or ""}),
        lambda item: _given(item, "error"),
    ),
    "mcp_call": (_mcp_name, lambda item: str(item["arguments"]), _mcp_output),
}
_SILENT: Final = frozenset({"mcp_list_tools", "mcp_approval_response"})
TYPES: Final = frozenset({*_TOLD, *_SILENT, "mcp_approval_request", "program", "program_output"})
