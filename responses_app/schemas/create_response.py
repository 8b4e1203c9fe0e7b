"""Schema of `POST /v1/responses`. docs/api/fields.md lists each field: honoured, echoed, accepted or refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, Literal

from django.conf import settings
from pydantic import Field

from responses_app.errors import InvalidRequest
from responses_app.models import ApiKey
from responses_app.runs.create_request import OWN_THRESHOLD, CreateRequest
from responses_app.schemas import control_items, text_format
from responses_app.schemas import tool_choice as schemas_tool_choice
from responses_app.schemas.options import (
    AccessPrograms,
    BackgroundOptions,
    CacheOptions,
    ContextManagement,
    ImageOptions,
    ReasoningOptions,
    RerunOptions,
    StreamOptions,
    TextOptions,
)
from responses_app.schemas.parsing import items, tools
from responses_app.schemas.parsing.logit_bias import parse_logit_bias
from responses_app.schemas.parsing.union_fields import parse_conversation, parse_stops
from responses_app.tools.mcp.request.parsing import secret_headers
from responses_app.tools.registry import INCLUDES
from responses_app.validation.base import MAX_METADATA, Array, StrictModel, parse_metadata, validate
from responses_app.validation.errors import invalid, invalid_value, json_path, missing, unknown_parameter, wrong_type

LOGPROBS = "message.output_text.logprobs"
_OWN_INCLUDES = (
    "computer_call_output.output.image_url",
    "message.input_image.image_url",
    LOGPROBS,
    "reasoning.encrypted_content",
)
INCLUDE = tuple(sorted((*_OWN_INCLUDES, *INCLUDES)))
LOWEST_PRIORITY = 1
PRIORITIES = {"priority": -1, "fast": -1, "ultrafast": -1, "flex": LOWEST_PRIORITY}
ShortText = Annotated[str, Field(max_length=64)]


DISABLED: Final = "disabled"
TRUNCATIONS: Final = ("auto", DISABLED)


class TruncationLimits(StrictModel):
    """Limits of a truncation, in tokens."""

    post_instructions: Annotated[int, Field(ge=1)] | None = None


class RetentionRatio(StrictModel):
    """Truncation in the shape of the Realtime API: the share of the context that a truncation retains."""

    type: Literal["retention_ratio"]
    retention_ratio: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    token_limits: TruncationLimits | None = None


class CreateResponse(StrictModel):
    """Schema of the body; `schemas.parsing` parses the input items and the tools."""

    other_names: ClassVar[Mapping[str, str]] = {
        "messages": "input",
        "system": "instructions",
        "max_tokens": "max_output_tokens",
        "max_completion_tokens": "max_output_tokens",
        "reasoning_effort": "reasoning.effort",
        "response_format": "text.format",
        "verbosity": "text.verbosity",
        "functions": "tools",
    }
    model: str
    input: Any = None
    instructions: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    store: bool | None = None
    background: bool | None = None
    background_options: BackgroundOptions | None = None
    previous_response_id: str | None = None
    conversation: Any = None
    include: Array[str] | None = None
    max_output_tokens: Annotated[int, Field(ge=16)] | None = None
    max_tool_calls: Annotated[int, Field(ge=1)] | None = None
    parallel_tool_calls: bool | None = None
    tools: Any = None
    tool_choice: Any = None
    text: TextOptions | None = None
    reasoning: ReasoningOptions | None = None
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2, allow_inf_nan=False)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2, allow_inf_nan=False)] | None = None
    truncation: Any = None
    context_management: Annotated[list[ContextManagement], Field(min_length=1, max_length=1)] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    metadata: Annotated[dict[str, Any], Field(max_length=MAX_METADATA)] | None = None
    prompt_cache_key: ShortText | None = None
    prompt_cache_retention: Literal["in_memory", "in-memory", "24h"] | None = None
    prompt_cache_options: CacheOptions | None = None
    safety_identifier: Annotated[str, Field(max_length=128)] | None = None
    service_tier: Literal["auto", "default", "flex", "scale", "priority", "fast", "ultrafast"] | None = None
    user: str | None = None
    access_programs: AccessPrograms | None = None
    image: ImageOptions | None = None
    # Fields of clients that also talk to other servers.
    client_metadata: Any = None
    ignore_eos: bool | None = None
    seed: Annotated[int, Field(ge=-(2**63), le=2**63 - 1)] | None = None
    stop: Any = None
    top_k: Annotated[int, Field(ge=0)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    repetition_penalty: Annotated[float, Field(ge=0.01, le=2, allow_inf_nan=False)] | None = None
    logit_bias: Any = None


class PageRequest(CreateResponse):
    """Request of a page, which repeats requests of every API format: the others have no smallest limit of output tokens."""

    max_output_tokens: Annotated[int, Field(ge=1)] | None = None


# Fields of the API that are rejected unless they are empty, with the reason.
REFUSED: Mapping[str, str] = {
    "prompt": "prompt templates are not supported by this server",
    "moderation": "moderation is not supported by this server",
    "multi_agent": "multi-agent responses are not supported by this server",
}
# Field that only browser keys of signed-in users may send.
RERUN = "rerun"
EMPTY: tuple[object, ...] = (None, False, 0, [], {})


def parse_request(
    raw: dict[str, Any],
    key: ApiKey,
    *,
    has_default: bool = True,
    request_id: str = "",
    any_schema: bool = False,
    other_fields: Mapping[str, Any] = MappingProxyType({}),
) -> CreateRequest:
    """Validate the body and return a `CreateRequest`. Null means absent in every optional field. Raises InvalidRequest.

    With `has_default`, a request without `model` uses RESPONSES_DEFAULT_MODEL. `request_id` is the `x-request-id` of the answer.
    With `any_schema`, tools with `strict` need not follow the rules of strict mode. Those of the pages need not either: they
    repeat tools of every API format. `other_fields` are fields of the `CreateRequest` that a body of Responses cannot have.
    """
    _refuse(raw)
    rerun = _rerun(raw, key)
    fields = {
        name: field_value for name, field_value in raw.items() if field_value is not None and name not in (*REFUSED, RERUN)
    }
    if has_default and settings.RESPONSES_DEFAULT_MODEL:
        fields.setdefault("model", settings.RESPONSES_DEFAULT_MODEL)
    body = validate(CreateResponse if key.pk is not None else PageRequest, fields, ())
    _include(body.include or [])
    parse_metadata(body.metadata)
    _prewarm(body.prompt_cache_options)
    created = _order(body, key, request_id, other_fields, any_schema=any_schema or key.pk is None)
    if rerun is None:
        return created
    recorded, asks = rerun.tools == "recorded", rerun.tools == "ask"
    return replace(created, rerun_of=rerun.of, uses_recorded_results=recorded, asks_before_calls=asks)


def _rerun(raw: Mapping[str, Any], key: ApiKey) -> RerunOptions | None:
    """Return the field of the page that runs a request again, which a key with a row may not send. Raises InvalidRequest."""
    if raw.get(RERUN) is None:
        return None
    if key.pk is not None:
        raise unknown_parameter(RERUN)
    return validate(RerunOptions, raw[RERUN], (RERUN,))


def _order(
    body: CreateResponse, key: ApiKey, request_id: str, other_fields: Mapping[str, Any], *, any_schema: bool
) -> CreateRequest:
    offered = tools.read_of_any_schema(body.tools) if any_schema else tools.read(body.tools)
    conversation = parse_conversation(body.conversation)
    _check_context(body, conversation)
    input_items = items.parse_items(body.input) if body.input is not None else []
    compacts = bool(input_items) and input_items[-1]["type"] == control_items.TRIGGER
    return CreateRequest(
        project=key.project,
        key=key.pk,
        user=key.user_pk,
        request_id=request_id,
        model=body.model,
        input=input_items[:-1] if compacts else input_items,
        compacts=compacts,
        instructions=body.instructions,
        tools=offered,
        secrets=secret_headers(body.tools or ()),
        tool_choice=schemas_tool_choice.parse_tool_choice(body.tool_choice, offered),
        parallel_tool_calls=body.parallel_tool_calls is not False,
        reasoning=_reasoning(body.reasoning),
        format=text_format.parse_text_format(body.text.format if body.text else None),
        store=settings.RESPONSES_STORE_DEFAULT if body.store is None else body.store,
        stream=bool(body.stream),
        background=bool(body.background),
        obfuscate=body.stream_options is None or body.stream_options.include_obfuscation is not False,
        priority=LOWEST_PRIORITY if _can_wait(body) else PRIORITIES.get(body.service_tier or "auto", 0),
        truncation=_truncation(body.truncation),
        compact_threshold=(body.context_management[0].compact_threshold or OWN_THRESHOLD) if body.context_management else None,
        previous_response_id=body.previous_response_id or None,
        comparison_response_id=(body.prompt_cache_options.comparison_response_id or None)
        if body.prompt_cache_options
        else None,
        conversation=conversation,
        include=frozenset(body.include or ()),
        metadata=body.metadata or {},
        cache_key=body.prompt_cache_key,
        echo=_echo(body),
        **{**_sampling(body), **other_fields},
    )


def _check_context(body: CreateResponse, conversation: str | None) -> None:
    """Require input or earlier items, and a single source of earlier items. Raises InvalidRequest."""
    if conversation and body.previous_response_id:
        message = "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Ensure you are only providing one of them."
        raise InvalidRequest(message, code="mutually_exclusive_parameters")
    if body.input is None and not (body.previous_response_id or conversation):
        raise missing(("input",))


def _sampling(body: CreateResponse) -> dict[str, Any]:
    """Return the sampling fields of a `CreateRequest`. Raises InvalidRequest."""
    return {
        "temperature": body.temperature,
        "top_p": body.top_p,
        "presence_penalty": body.presence_penalty or 0.0,
        "frequency_penalty": body.frequency_penalty or 0.0,
        "ignore_eos": bool(body.ignore_eos),
        "seed": body.seed,
        "top_k": body.top_k,
        "min_p": body.min_p,
        "repetition_penalty": body.repetition_penalty,
        "logit_bias": parse_logit_bias(body.logit_bias),
        "stop": parse_stops(body.stop),
        "max_output_tokens": body.max_output_tokens,
        "logprobs": _logprobs(body),
    }


def _echo(body: CreateResponse) -> dict[str, Any]:
    """Return the fields that the response repeats and that have no effect here, those that are set. Raises InvalidRequest."""
    echo = {
        "max_tool_calls": body.max_tool_calls,
        "prompt_cache_key": body.prompt_cache_key,
        "prompt_cache_retention": body.prompt_cache_retention,
        "safety_identifier": body.safety_identifier,
        "user": body.user,
        "verbosity": body.text.verbosity if body.text else None,
        "access_programs": _access_programs(body.access_programs),
        "image": _image(body.image),
    }
    return {name: value for name, value in echo.items() if value is not None}


def _logprobs(body: CreateResponse) -> int | None:
    """Return the number of alternatives per token, or None without log-probabilities; `top_logprobs` implies the include."""
    includes_logprobs = LOGPROBS in (body.include or ()) or body.top_logprobs
    return (body.top_logprobs or 0) if includes_logprobs else None


def _refuse(raw: Mapping[str, Any]) -> None:
    for name, reason in REFUSED.items():
        if raw.get(name) not in EMPTY:
            raise InvalidRequest(f"Unsupported parameter: '{name}': {reason}.", param=name, code="unsupported_parameter")


def _include(values: list[str]) -> None:
    for index, one in enumerate(values):
        where = json_path(("include", index))
        if one not in INCLUDE:
            raise invalid_value(where, one, INCLUDE)


def _can_wait(body: CreateResponse) -> bool:
    """Return True for a completion window of hours, which needs `background` without `stream`. Raises InvalidRequest."""
    if body.background_options is None or not body.background_options.can_wait:
        return False
    if body.background and not body.stream:
        return True
    problem = "'2h' and '8h' need 'background' to be true and 'stream' to be false."
    raise invalid(("background_options", "completion_window"), problem)


def _prewarm(options: CacheOptions | None) -> None:
    """Reject `prompt_cache_options.prewarm`, which would create a response without output. Raises InvalidRequest."""
    if options is not None and options.prewarm:
        where = "prompt_cache_options.prewarm"
        message = f"Unsupported parameter: '{where}': every prompt is cached by being used, none beforehand."
        raise InvalidRequest(message, param=where, code="unsupported_parameter")


def _access_programs(options: AccessPrograms | None) -> dict[str, str] | None:
    """Return the access program to repeat in the response, which is always the standard program."""
    return {"cyber": "standard"} if options is not None and options.cyber is not None else None


def _image(options: ImageOptions | None) -> dict[str, str] | None:
    """Return the image compression to repeat in the response. Raises InvalidRequest if compression is required."""
    if options is None:
        return None
    if options.context_compression == "enabled":
        where = "image.context_compression"
        message = f"Unsupported value: '{where}' does not support 'enabled' with this server. Supported values are: 'auto', 'disabled'."
        raise InvalidRequest(message, param=where, code="unsupported_value")
    return {"context_compression": "disabled"}


def _truncation(value: Any) -> str | dict[str, Any]:
    if isinstance(value, dict):
        return validate(RetentionRatio, value, ("truncation",)).model_dump(exclude_none=True)
    if value is not None and not isinstance(value, str):
        raise wrong_type("truncation", "one of 'auto', 'disabled', or an object", value)
    if value is not None and value not in TRUNCATIONS:
        raise invalid_value("truncation", value, "'auto', 'disabled' or an object of the type 'retention_ratio'")
    return value or DISABLED


def _reasoning(options: ReasoningOptions | None) -> dict[str, Any] | None:
    if options is None:
        return None
    reasoning = options.model_dump(exclude_none=True)
    old = reasoning.pop("generate_summary", None)
    return reasoning if old is None else {"summary": old, **reasoning}
