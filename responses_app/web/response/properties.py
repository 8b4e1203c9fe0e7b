"""Properties of a response for its page: how it ended, and every parameter of the request that is not a default."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from responses_app.models import Direction, Item, Response, Status
from responses_app.protocol.items.registry import FAMILIES
from responses_app.store.log import reader
from responses_app.web.render.sanitize import visible
from responses_app.web.responses.parameters import parameters

MAX_VALUE_CHARS: Final = 200
# Shown elsewhere on the page.
LEFT_OUT: Final = frozenset({"instructions", "metadata"})
# The part of a tool that names it, in the order of preference.
TOOL_NAMES: Final = ("name", "server_label", "type")
LABELS: Final = {"top_p": "Top P", "top_k": "Top K", "ignore_eos": "Ignore end of text", "text.format": "Output format"}


def request_properties(row: Response) -> list[tuple[str, str]]:
    """Return label and value of the API format, the finish reason and each parameter of the request."""
    api = [("API format", str(row.get_api_format_display()))] if row.api_format else []
    finish = [("Finish reason", _finish(row))] if row.ended_at is not None else []
    return [*api, *finish, *((_label(name), _shown(name, value)) for name, value in _flat(parameters(row)))]


def finish_reason(row: Response, snapshot: Mapping[str, Any], *, has_calls: bool) -> str:
    """Return why an ended response ended, in the words of the API. With `has_calls` the client has calls to answer."""
    if row.status == Status.COMPLETED:
        return "tool calls" if has_calls else "stop"
    reason = (snapshot.get("incomplete_details") or {}).get("reason") or row.error_code
    return visible(str(reason or row.get_status_display()))


def _finish(row: Response) -> str:
    """Return the finish reason of a stored response; only an incomplete one has the reason in its snapshot."""
    snapshot: Mapping[str, Any] = {}
    if row.status == Status.INCOMPLETE:
        ended = reader.with_last_event(Response.objects.filter(pk=row.pk)).only("pk").first()
        stored = reader.terminal_snapshot(ended) if ended is not None else None
        snapshot = json.loads(stored) if stored else {}
    calls = Item.objects.filter(response=row, direction=Direction.OUTPUT, type__in=FAMILIES.calls_by_output.values())
    return finish_reason(row, snapshot, has_calls=calls.exists())


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield name and value of each parameter, those of `reasoning` and `text` with the name of the object before."""
    for name, value in values.items():
        if name in ("reasoning", "text") and isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        elif name not in LEFT_OUT:
            yield prefix + name, value


def _label(name: str) -> str:
    return LABELS.get(name, name.replace(".", " ").replace("_", " ").capitalize())


def _shown(name: str, value: Any) -> str:
    """Return a value as a person reads it: tools and formats by their names."""
    if name == "tools":
        value = ", ".join(_tool_name(tool) for tool in value)
    elif name == "text.format" and isinstance(value, Mapping):
        value = " ".join(str(value[key]) for key in ("type", "name") if value.get(key))
    elif isinstance(value, bool):
        value = "yes" if value else "no"
    elif isinstance(value, (Mapping, list, tuple)):
        value = json.dumps(value, ensure_ascii=False)
    text = str(value)
    return visible(text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}…")


def _tool_name(tool: Mapping[str, Any]) -> str:
    return next((str(tool[key]) for key in TOOL_NAMES if tool.get(key)), "")
