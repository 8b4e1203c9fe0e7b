"""Profiles of the API: OpenAI's names below /v1, the names of Open Responses below /openresponses/v1.

The log holds OpenAI's form. Requests and responses of Open Responses are converted, so both profiles read the same responses.
Open Responses defines 24 events, five item types and one tool type. Every other type carries the name of its vendor,
here OpenAI, before a colon. Every item has a status, and optional keys without a value are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson
from django.http import HttpRequest

from responses_app.protocol.conformance.spec import EVENTS, ITEMS, RESPONSE_KEYS, is_vendor_type
from responses_app.protocol.encoding import EventFrame
from responses_app.protocol.items.registry import FAMILIES
from responses_app.utils.url_prefix import local_path

OPEN: Final = "/openresponses/"
SLUG: Final = "openai:"
_BEGINS: Final = b'{"type":"'
# Event names of raw reasoning, which both profiles have under different names.
_OURS, _THEIRS = "response.reasoning_text.", "response.reasoning."
# Types of items, tools and choices without a vendor prefix.
_COMMON: Final = ITEMS["openresponses"] | {"function", "allowed_tools"}
# Required keys, null or not.
_REQUIRED: Final = RESPONSE_KEYS | {"user"}
_OF_TOOL: Final = frozenset({"description", "parameters", "strict"})
_OF_REASONING: Final = frozenset({"effort", "summary"})

Json = Mapping[str, Any]


def is_open(request: HttpRequest) -> bool:
    """Return True if the path belongs to Open Responses."""
    return local_path(request.path).startswith(OPEN)


def frame_to_profile(frame: EventFrame) -> EventFrame:
    """Convert a frame to Open Responses. Only frames with an item or a response are decoded."""
    name = _event(frame.type)
    if name != frame.type:
        return EventFrame(frame.number, name, _BEGINS + name.encode() + frame.data[len(_BEGINS) + len(frame.type) :])
    for key, shape in _SHAPES.items():
        if name in _CARRIERS[key]:
            event = orjson.loads(frame.data)
            return EventFrame(frame.number, name, orjson.dumps({**event, key: shape(event[key], name)}))
    return frame


def to_profile(request: HttpRequest, response: bytes) -> bytes:
    """Convert a response, or another object with an `output`, to the profile of the request."""
    return orjson.dumps(_response(orjson.loads(response))) if is_open(request) else response


def item_to_profile(request: HttpRequest, item: bytes) -> bytes:
    """Convert an item to the profile of the request."""
    return orjson.dumps(_item(orjson.loads(item))) if is_open(request) else item


def normalize_request(request: HttpRequest, raw: dict[str, Any]) -> dict[str, Any]:
    """Convert the body of a request to OpenAI's profile; the vendor prefix is optional."""
    return from_profile(raw) if is_open(request) else raw


def from_profile(raw: dict[str, Any]) -> dict[str, Any]:
    """Convert the body of an Open Responses request to OpenAI's profile."""
    lists = {key: raw[key] for key in ("input", "items", "tools") if isinstance(raw.get(key), list)}
    bare = {key: [_stateless(_retype(one, _without_vendor)) for one in each] for key, each in lists.items()}
    return {**raw, **bare, **({"tool_choice": _retype(raw["tool_choice"], _without_vendor)} if "tool_choice" in raw else {})}


def _event(name: str) -> str:
    if name.startswith(_OURS):
        return _THEIRS + name.removeprefix(_OURS)
    return name if name in EVENTS["openresponses"] else SLUG + name


def _response(body: Json, _event: str = "") -> Json:
    made = {key: value for key, value in body.items() if value is not None or key in _REQUIRED}
    made["output"] = [_item(one) for one in made["output"]]
    if "tools" in made:
        made["tools"] = [_tool(one) for one in made["tools"]]
        made["tool_choice"] = _retype(made["tool_choice"], _vendor)
        made["reasoning"] = _compact(made["reasoning"], _OF_REASONING)
    return made


def _item(item: Json, event: str = "") -> Json:
    status = "in_progress" if event.endswith(".added") else "completed"
    return {"status": status, **_compact(_retype(item, _vendor))}


def _tool(tool: Json) -> Json:
    return _compact(_retype(tool, _vendor), _OF_TOOL if tool["type"] == "function" else frozenset())


def _compact(node: Json, required: frozenset[str] = frozenset()) -> Json:
    return {key: value for key, value in node.items() if value is not None or key in required}


def _retype(node: Any, name: Callable[[str], str]) -> Any:
    """Rename the type of an object and of the tools inside."""
    if not isinstance(node, dict):
        return node
    tools = {"tools": [_retype(one, name) for one in node["tools"]]} if isinstance(node.get("tools"), list) else {}
    kind = {"type": name(node["type"])} if isinstance(node.get("type"), str) else {}
    return {**node, **kind, **tools}


def _vendor(kind: str) -> str:
    return kind if kind in _COMMON or is_vendor_type(kind) else SLUG + kind


def _without_vendor(kind: str) -> str:
    return kind.removeprefix(SLUG)


def _stateless(item: Any) -> Any:
    """Remove the status that `_item` has added."""
    if isinstance(item, dict) and str(item.get("type")) in FAMILIES.without_status:
        return {key: value for key, value in item.items() if key != "status"}
    return item


_SHAPES: Final[Mapping[str, Callable[[Json, str], Json]]] = {"response": _response, "item": _item}
_CARRIERS: Final = {
    "response": frozenset(
        f"response.{stage}" for stage in ("created", "queued", "in_progress", "completed", "incomplete", "failed")
    ),
    "item": frozenset({"response.output_item.added", "response.output_item.done"}),
}
