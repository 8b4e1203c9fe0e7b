"""Request parameters of a stored response, in the form of a new request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from responses_app.api_formats.client_body import hide_credentials
from responses_app.models import Response, StoredRequest
from responses_app.runs.create_request import OWN_THRESHOLD, CreateRequest

# Fields with the same name in CreateRequest and in the request body.
SAME_NAME_FIELDS = (
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "ignore_eos",
    "seed",
    "stop",
    "logit_bias",
    "max_output_tokens",
    "truncation",
    "metadata",
)
DEFAULTS = CreateRequest(project="", key=None, model="", input=())
EMPTY_VALUES: tuple[object, ...] = ((), [], {})


def parameters(row: Response) -> dict[str, Any]:
    """Return the parameters of the request without defaults, `model`, `input` and the previous response or conversation."""
    request = stored_request(row)
    return request_parameters(request) if request is not None else {}


def client_body(row: Response) -> str:
    """Return the indented JSON of the body as the client has sent it in another API format; empty for Responses."""
    request = stored_request(row) if row.api_format else None
    if request is None or not request.client_body:
        return ""
    # Earlier versions have stored the queries of URLs.
    return json.dumps(hide_credentials(json.loads(request.client_body)), indent=2, ensure_ascii=False)


def stored_request(row: Response) -> CreateRequest | None:
    """Load the request of the response without its input; None if it is not stored."""
    stored = StoredRequest.objects.filter(response=row).values_list("create_request", flat=True).first()
    return CreateRequest.load(stored, ()) if stored is not None else None


def request_parameters(request: CreateRequest) -> dict[str, Any]:
    """Return the parameters of a request as `parameters`."""
    same = {name: getattr(request, name) for name in SAME_NAME_FIELDS}
    if request.output_limit:
        # A new request gets the default or maximum of its own key.
        del same["max_output_tokens"]
    explicit = {name: value for name, value in same.items() if value not in EMPTY_VALUES and value != getattr(DEFAULTS, name)}
    return {**explicit, **_without_null(request.echo, "verbosity"), **_nested(request), **_extras(request)}


def _nested(request: CreateRequest) -> dict[str, Any]:
    """Build `reasoning` and `text`."""
    reasoning = _without_null(request.reasoning or {})
    text = {
        **({"format": request.format} if request.format != DEFAULTS.format else {}),
        **({"verbosity": request.echo["verbosity"]} if request.echo.get("verbosity") else {}),
    }
    return {**({"reasoning": reasoning} if reasoning else {}), **({"text": text} if text else {})}


def _extras(request: CreateRequest) -> dict[str, Any]:
    """Build the parameters with a different form in CreateRequest."""
    extras: dict[str, Any] = {}
    if request.include:
        extras["include"] = sorted(request.include)
    if request.logprobs:
        extras["top_logprobs"] = request.logprobs
    if request.compact_threshold is not None:
        threshold = {} if request.compact_threshold == OWN_THRESHOLD else {"compact_threshold": request.compact_threshold}
        extras["context_management"] = [{"type": "compaction", **threshold}]
    return extras


def _without_null(fields: Mapping[str, Any], *excluded: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None and name not in excluded}
