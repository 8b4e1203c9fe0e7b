"""Request parameters of a stored response, as a new request can send them again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from responses_app.models import Response, StoredRequest
from responses_app.runs.create_request import OWN_THRESHOLD, CreateRequest

# Fields of an order that a request has under the same name.
SAME = (
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "ignore_eos",
    "stop",
    "max_output_tokens",
    "truncation",
    "metadata",
)
USUAL = CreateRequest(project="", key=None, model="", input=())
EMPTY: tuple[object, ...] = ((), [], {})


def parameters(row: Response) -> dict[str, Any]:
    """What the request of the response said beyond model, input and what it continues; without what it left to the defaults."""
    kept = StoredRequest.objects.filter(response=row).values_list("create_request", flat=True).first()
    return _parameters(CreateRequest.load(kept, ())) if kept is not None else {}


def _parameters(order: CreateRequest) -> dict[str, Any]:
    same = {name: getattr(order, name) for name in SAME}
    given = {name: value for name, value in same.items() if value not in EMPTY and value != getattr(USUAL, name)}
    return {**given, **_said(order.echo, "verbosity"), **_shaped(order), **_extras(order)}


def _shaped(order: CreateRequest) -> dict[str, Any]:
    """How the model is to think and to write."""
    reasoning = _said(order.reasoning or {})
    text = {
        **({"format": order.format} if order.format != USUAL.format else {}),
        **({"verbosity": order.echo["verbosity"]} if order.echo.get("verbosity") else {}),
    }
    return {**({"reasoning": reasoning} if reasoning else {}), **({"text": text} if text else {})}


def _extras(order: CreateRequest) -> dict[str, Any]:
    """Parameters that an order has in a form of its own."""
    extras: dict[str, Any] = {}
    if order.include:
        extras["include"] = sorted(order.include)
    if order.logprobs:
        extras["top_logprobs"] = order.logprobs
    if order.compact_threshold is not None:
        threshold = {} if order.compact_threshold == OWN_THRESHOLD else {"compact_threshold": order.compact_threshold}
        extras["context_management"] = [{"type": "compaction", **threshold}]
    return extras


def _said(fields: Mapping[str, Any], *but: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None and name not in but}
