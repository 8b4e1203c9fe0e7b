"""Check of a request against the rights and limits of the key, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.conf import settings

from responses_app.access import model_access, tool_access
from responses_app.errors import InvalidRequest
from responses_app.models import ApiKey
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.execute.response_limits import LimitName
from responses_app.runs.models import ServedModel

KEY_LIMIT = "the limit of this API key"


def authorize(key: ApiKey, request: CreateRequest) -> CreateRequest:
    """Return the request with the limits of the model and the key. Raises InvalidRequest, Forbidden."""
    model_access.check_model(key, request.model)
    tool_access.check_tools(key, request.tools)
    return _with_limits(key, request)


@dataclass(frozen=True, slots=True)
class Limit:
    """Limit of a request, with its name in the response and in an error message."""

    value: int
    name: LimitName
    shown: str = ""


def _with_limits(key: ApiKey, request: CreateRequest) -> CreateRequest:
    served = model_access.find(request.model)
    if served is None:
        return request
    run_limit = _maximum(settings.RESPONSES_MAX_RUN_SECONDS, "RESPONSES_MAX_RUN_SECONDS", served.name, key.max_run_seconds)
    maximum = _maximum(settings.RESPONSES_MAX_OUTPUT_TOKENS, "RESPONSES_MAX_OUTPUT_TOKENS", served.name, key.max_output_tokens)
    if run_limit is not None:
        request = replace(request, max_run_seconds=run_limit.value, run_limit=run_limit.name)
    if request.max_output_tokens is None:
        limit = _default(key, served, maximum)
        return request if limit is None else replace(request, max_output_tokens=limit.value, output_limit=limit.name)
    if maximum is not None and request.max_output_tokens > maximum.value:
        raise _too_many(request.max_output_tokens, maximum)
    return request


def _default(key: ApiKey, served: ServedModel, maximum: Limit | None) -> Limit | None:
    """Return the limit of the output of a request that names none: the smallest default or maximum.

    The `max_new_tokens` of a model alone are no limit here: these hold for each round.
    """
    of_model = _of_model(settings.RESPONSES_DEFAULT_OUTPUT_TOKENS, served.name)
    if not of_model and key.default_output_tokens is None and maximum is None:
        return None
    defaults = {
        LimitName.KEY_DEFAULT: key.default_output_tokens,
        LimitName.MODEL_DEFAULT: of_model or served.max_output_tokens(None),
    }
    limits = [Limit(value, name) for name, value in defaults.items() if value]
    return _smallest(limits if maximum is None else [*limits, maximum])


def _of_model(setting: Mapping[str, int], model: str) -> int:
    """Return the number of a setting for a model, else the number for all models; 0 without any."""
    return setting.get(model, setting.get("", 0))


def _maximum(setting: Mapping[str, int], name: str, model: str, of_key: int | None) -> Limit | None:
    of_model = _of_model(setting, model)
    limits = [Limit(of_model, LimitName.MODEL_MAXIMUM, f"{name} of this server")] if of_model else []
    if of_key is not None:
        limits.append(Limit(of_key, LimitName.KEY_MAXIMUM, KEY_LIMIT))
    return _smallest(limits)


def _smallest(limits: Sequence[Limit]) -> Limit | None:
    return min(limits, key=lambda limit: limit.value, default=None)


def _too_many(tokens: int, limit: Limit) -> InvalidRequest:
    message = (
        "Invalid 'max_output_tokens': integer above maximum value. "
        f"Expected a value <= {limit.value} ({limit.shown}), but got {tokens} instead."
    )
    return InvalidRequest(message, param="max_output_tokens", code="integer_above_max_value")
