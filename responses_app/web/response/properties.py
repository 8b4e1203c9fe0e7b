"""Properties of a response for the pages: the finish reason, and every parameter and limit of the request."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from django.db.models import Q

from responses_app.models import Direction, Item, Response, Status
from responses_app.protocol.items.registry import FAMILIES
from responses_app.web.render.sanitize import visible
from responses_app.web.response.outcome import LIMITS
from responses_app.web.responses.failures import last_snapshots, reason_of
from responses_app.web.responses.parameters import request_parameters, stored_request

MAX_VALUE_CHARS: Final = 200
# Shown elsewhere on the page.
LEFT_OUT: Final = frozenset({"instructions", "metadata"})
# The part of a tool that names it, in the order of preference.
TOOL_NAMES: Final = ("name", "server_label", "type")
LABELS: Final = {
    "top_p": "Top P",
    "top_k": "Top K",
    "min_p": "Min P",
    "ignore_eos": "Ignore end of text",
    "text.format": "Output format",
}
# Parameters and limits with the words for a request that does not set them, in the order of the page.
UNSET: Final = {
    "tools": "none",
    "tool_choice": "auto",
    "parallel_tool_calls": "yes",
    "max_tool_calls": "limit of the server",
    "temperature": "default of the model",
    "top_p": "default of the model",
    "top_k": "default of the model",
    "min_p": "default of the model",
    "repetition_penalty": "default of the model",
    "max_output_tokens": "no limit",
    "reasoning.effort": "default of the model",
    "text.format": "text",
    "truncation": "disabled",
    "presence_penalty": "0",
    "frequency_penalty": "0",
    "seed": "none",
    "stop": "none",
    "logit_bias": "none",
}


class Property(NamedTuple):
    """Label and value of a property. `is_set` is False for a parameter that the request does not set."""

    label: str
    value: str
    is_set: bool = True


def request_properties(row: Response) -> list[Property]:
    """Return the API format, the finish reason, and the parameters: set in the request first, then unset."""
    api = [Property("API format", str(row.get_api_format_display()))] if row.api_format else []
    finish = [Property("Finish reason", _finish(row))] if row.ended_at is not None else []
    request = stored_request(row)
    if request is None:
        return [*api, *finish]
    values = dict(_flat(request_parameters(request)))
    if row.api_format:
        # Of the translation to Responses alone.
        values.pop("include", None)
    modes = {"stream": request.stream, "background": request.background, "store": request.store}
    if "tools" in values:
        values["tools"] = _tool_names(row, values["tools"])
    unset = dict(UNSET)
    if request.output_limit in LIMITS:
        unset["max_output_tokens"] = f"{request.max_output_tokens}, {LIMITS[request.output_limit]}"
    chosen = [Property(_label(name), _shown(name, value)) for name, value in {**values, **modes}.items()]
    return [
        *api,
        *finish,
        *chosen,
        *(Property(_label(name), text, False) for name, text in unset.items() if name not in values),
    ]


def finish_reason(row: Response, snapshot: Mapping[str, Any], *, has_calls: bool) -> str:
    """Return why an ended response ended, in the words of the API. With `has_calls` the client has calls to answer."""
    if row.status == Status.COMPLETED:
        return "tool calls" if has_calls else "stop"
    return visible(reason_of(snapshot) or row.error_code or row.get_status_display())


def _finish(row: Response) -> str:
    """Return the finish reason of a stored response; only an incomplete one has the reason in its snapshot."""
    snapshot = last_snapshots([row.pk]).get(row.pk, {}) if row.status == Status.INCOMPLETE else {}
    calls = Item.objects.filter(response=row, direction=Direction.OUTPUT, type__in=FAMILIES.calls_by_output.values())
    return finish_reason(row, snapshot, has_calls=calls.exists())


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield name and value of each parameter, the fields of `reasoning` and `text` with the name of the object before."""
    for name, value in values.items():
        if name in ("reasoning", "text") and isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        elif name not in LEFT_OUT:
            yield prefix + name, value


def _label(name: str) -> str:
    return LABELS.get(name, name.replace(".", " ").replace("_", " ").capitalize())


def _shown(name: str, value: Any) -> str:
    """Return a value in words for a person: tools and formats by name."""
    if name == "text.format" and isinstance(value, Mapping):
        value = " ".join(str(value[key]) for key in ("type", "name") if value.get(key))
    elif isinstance(value, bool):
        value = "yes" if value else "no"
    elif isinstance(value, (list, tuple)) and value and all(isinstance(one, str) for one in value):
        value = ", ".join(value)
    elif isinstance(value, (Mapping, list, tuple)):
        value = json.dumps(value, ensure_ascii=False)
    text = str(value)
    return visible(text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}…")


def _tool_names(row: Response, tools: Sequence[Mapping[str, Any]]) -> str:
    """Return the names of the tools, for an MCP server with the number of tools that it listed."""
    counts: dict[str, int] = {}
    if any(tool.get("type") == "mcp" for tool in tools):
        listings = Item.objects.filter(Q(response=row) | Q(pk__in=row.history), type="mcp_list_tools").order_by("pk")
        for body in listings.values_list("body", flat=True):
            listing = json.loads(body)
            counts[str(listing.get("server_label"))] = len(listing.get("tools") or ())
    names = [(_tool_name(tool), tool.get("type") == "mcp") for tool in tools]
    return ", ".join(f"{name} ({counts[name]})" if is_mcp and name in counts else name for name, is_mcp in names)


def _tool_name(tool: Mapping[str, Any]) -> str:
    return next((str(tool[key]) for key in TOOL_NAMES if tool.get(key)), "")
