"""Check of a request against the rights and limits of the key, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from django.conf import settings

from responses_app.access import model_access, tool_access
from responses_app.errors import InvalidRequest
from responses_app.models import ApiKey
from responses_app.runs.create_request import CreateRequest

KEY_LIMIT = "the limit of this API key"


def authorize(key: ApiKey, request: CreateRequest) -> CreateRequest:
    """Return the request with the limits of the model and the key. Raises InvalidRequest, Forbidden."""
    model_access.check_model(key, request.model)
    tool_access.check_tools(key, request.tools)
    return _with_limits(key, request)


@dataclass(frozen=True, slots=True)
class Limit:
    """Limit of a request, with the name that an error message shows."""

    value: int
    name: str


def _with_limits(key: ApiKey, request: CreateRequest) -> CreateRequest:
    served = model_access.find(request.model)
    if served is None:
        return request
    run_limit = _smallest(settings.RESPONSES_MAX_RUN_SECONDS, "RESPONSES_MAX_RUN_SECONDS", served.name, key.max_run_seconds)
    limit = _smallest(settings.RESPONSES_MAX_OUTPUT_TOKENS, "RESPONSES_MAX_OUTPUT_TOKENS", served.name, key.max_output_tokens)
    tokens = request.max_output_tokens
    if tokens is None:
        default = _of_model(settings.RESPONSES_DEFAULT_OUTPUT_TOKENS, served.name)
        limits = [key.default_output_tokens, default, None if limit is None else limit.value]
        if any(limits):
            tokens = min(number for number in (*limits, served.max_output_tokens(None) if not default else None) if number)
    elif limit is not None and tokens > limit.value:
        raise _too_many(tokens, limit)
    seconds = None if run_limit is None else run_limit.value
    if (tokens, seconds) == (request.max_output_tokens, request.max_run_seconds):
        return request
    return replace(request, max_output_tokens=tokens, max_run_seconds=seconds)


def _of_model(setting: Mapping[str, int], model: str) -> int:
    """Return the number of a setting for a model, else the number for all models; 0 without any."""
    return setting.get(model, setting.get("", 0))


def _smallest(setting: Mapping[str, int], name: str, model: str, of_key: int | None) -> Limit | None:
    of_model = _of_model(setting, model)
    limits = [Limit(of_model, f"{name} of this server")] if of_model else []
    if of_key is not None:
        limits.append(Limit(of_key, KEY_LIMIT))
    return min(limits, key=lambda limit: limit.value, default=None)


def _too_many(tokens: int, limit: Limit) -> InvalidRequest:
    message = (
        "Invalid 'max_output_tokens': integer above maximum value. "
        f"Expected a value <= {limit.value} ({limit.name}), but got {tokens} instead."
    )
    return InvalidRequest(message, param="max_output_tokens", code="integer_above_max_value")
