"""Codec of vLLM's `POST /inference/v1/generate`: request body, response events, errors."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import orjson

from responses_app.engine_interface import (
    Chunk,
    EngineLacksModel,
    EngineOverloaded,
    EngineUnavailable,
    EngineUnreachable,
    Finish,
    GenerateRequest,
    Logprob,
    RequestRejected,
)
from responses_app.engines.vllm.params import FINISH_REASONS, sampling_fields, structured_fields

# HTTP statuses of a faulty request. All other errors (no such endpoint, wrong key, overload, failure) are the server's.
CLIENT_ERRORS = frozenset({400, 413, 422})

# HTTP statuses of an engine that runs and takes no more requests: 503 of vLLM (`--max-num-queued-reqs`), 429 of routers.
OVERLOADED = frozenset({429, 503})

# Header of the session, which vllm-router, llm-d and Ray Serve read.
SESSION_HEADER = "X-Session-ID"

# Prefix that vLLM adds to the request id of this endpoint; the abort endpoint expects the prefixed id.
ENGINE_ID_PREFIX = "generate-tokens-"

MAX_LOGPROBS = 20

# Beginning of vLLM's EngineDeadError message, which never concerns a constraint.
ENGINE_DEAD_PREFIX = "EngineCore encountered an issue"

IMAGE_TYPES: Mapping[bytes, str] = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}


def encode_body(request: GenerateRequest, model: str | None, priorities: bool) -> bytes:
    """Encode the JSON body. Raises RequestRejected for values without a JSON representation."""
    params = sampling_fields(request.sampling) | {"logprobs": _logprobs_parameter(request.sampling.logprobs)}
    if request.constraint:
        params["structured_outputs"] = structured_fields(request.constraint)
    fields: dict[str, Any] = {
        "request_id": engine_id(request),
        "model": model,
        "token_ids": list(request.prompt),
        "sampling_params": params,
        "stream": True,
        "stream_options": {"include_usage": True},
        "reasoning_ended": True,  # Apply the constraint from the first token, whatever reasoning parser the server has.
        "cache_salt": request.cache_salt,
    }
    if priorities:
        fields["priority"] = request.priority
    if request.images:
        fields["content_parts"] = [{"type": "image_url", "url": _data_url(image)} for image in request.images]
    try:
        return orjson.dumps(fields, option=orjson.OPT_NON_STR_KEYS)
    except (TypeError, ValueError) as error:
        raise RequestRejected(f"not representable as JSON: {error}") from error


def _logprobs_parameter(logprobs: int | None) -> int | None:
    """Return the `logprobs` parameter for vLLM: `logprobs` + 1, because vLLM counts the sampled token as an alternative.

    The result never exceeds vLLM's default limit unless `logprobs` does.
    """
    return min(logprobs + 1, max(logprobs, MAX_LOGPROBS)) if logprobs else logprobs


def headers(request: GenerateRequest, session_header: str) -> dict[str, str]:
    """Return the headers of a request: id, trace, and session, by which a router sends all turns of a chain to the same engine.

    vLLM takes the request id from the header and ignores the body; requests are aborted by the same id.
    """
    fields = {"X-Request-Id": engine_id(request), session_header: request.session or request.id}
    trace = {"traceparent": request.traceparent, "tracestate": request.tracestate}
    return {**fields, **{name: value for name, value in trace.items() if value}}


def engine_id(request: GenerateRequest) -> str:
    """Return the id of a request for vLLM's log: that of the HTTP request, by which a proxy logs it too, and that of the response."""
    return f"{request.request_id}-{request.id}" if request.request_id else request.id


def error_for(status: int, content: bytes, retry_after: str | None = None) -> RequestRejected | EngineUnavailable:
    """Map a response without a stream to an exception. `retry_after` is the header, of which only a number of seconds is used."""
    text = _error_text(content)
    message = f"HTTP {status}: {content[:200].decode(errors='replace') if text is None else text}"
    if status == 404 and text is not None:  # vLLM does not know the model. An unknown route has no such error.
        return EngineLacksModel(message)
    if status in OVERLOADED:
        return EngineOverloaded(message, float(retry_after) if retry_after and retry_after.isdecimal() else None)
    return _status_error(status, message)


def _json_object(payload: bytes) -> dict[str, Any]:
    """Return the object of an event. Raises EngineUnavailable for other data, as of a server or proxy that is no engine."""
    with suppress(orjson.JSONDecodeError):
        parsed = orjson.loads(payload)
        if isinstance(parsed, dict):
            return parsed
    raise EngineUnavailable("an event of the stream is no JSON object: check that the URL is that of a vLLM")


class GenerateStreamParser:
    """Parser of the event stream of a generation; takes bytes split at any position."""

    def __init__(self, request: GenerateRequest) -> None:
        self._wanted = request.sampling.logprobs
        self._constrained = request.constraint is not None
        self._buffer = b""
        self._finish: Finish | None = None
        self._cached: int | None = None
        self._prompt: int | None = None
        self._has_tokens = False

    def feed(self, data: bytes) -> Chunk | None:
        """Return the tokens completed by `data`, None without any. Raises RequestRejected, EngineUnavailable for an error event."""
        tokens: list[int] = []
        logprobs: list[Logprob] = []
        for event in self._events(data):
            for choice in event.get("choices", ()):
                tokens += choice.get("token_ids") or ()
                logprobs += self._logprobs(choice)
                self._set_finish(choice.get("finish_reason"))
            self._record_usage(event.get("usage"))
        if not tokens:
            return None
        self._has_tokens = True
        return Chunk(tuple(tokens), tuple(logprobs))

    def last_chunk(self) -> Chunk:
        """Return the final chunk. Raises EngineUnreachable if the stream ended without a finish reason."""
        if self._finish is None:
            raise EngineUnreachable("the stream broke off")
        return Chunk(finish=self._finish, cached=self._cached, prompt=self._prompt)

    def _events(self, data: bytes) -> Iterator[Mapping[str, Any]]:
        *events, self._buffer = (self._buffer + data).replace(b"\r\n", b"\n").split(b"\n\n")
        for event in events:
            if not event.startswith(b"data:"):
                continue  # An SSE comment, sent as keep-alive.
            payload = event[5:].strip()
            if payload == b"[DONE]":
                return
            parsed = _json_object(payload)
            if error := parsed.get("error"):
                raise self._event_error(error)
            yield parsed

    def _event_error(self, error: Mapping[str, Any]) -> RequestRejected | EngineUnavailable:
        """Map an error event to an exception.

        Before the first token of a constrained request the constraint is the cause, whatever `code` is.
        """
        code = error.get("code")
        if self._has_tokens or not isinstance(code, int) or str(error.get("message")).startswith(ENGINE_DEAD_PREFIX):
            code = 500
        elif self._constrained:
            code = 400
        return _status_error(code, str(error.get("message")))

    def _set_finish(self, reason: str | None) -> None:
        if reason == "error":
            raise EngineUnavailable("vLLM gave up on the request")
        if reason is not None:
            self._finish = FINISH_REASONS[reason]

    def _record_usage(self, usage: Mapping[str, Any] | None) -> None:
        """Record the usage; vLLM sends the details only if started with `--enable-prompt-tokens-details`."""
        self._prompt = (usage or {}).get("prompt_tokens", self._prompt)
        details = (usage or {}).get("prompt_tokens_details") or {}
        self._cached = details.get("cached_tokens", self._cached)

    def _logprobs(self, choice: Mapping[str, Any]) -> Iterator[Logprob]:
        if self._wanted is None:
            return
        for entry in (choice.get("logprobs") or {}).get("content") or ():
            pairs = ((top["token_id"], top["logprob"]) for top in entry["top_logprobs"])
            best = sorted(pairs, key=lambda pair: -pair[1])[: self._wanted]
            yield Logprob(entry["token_id"], entry["logprob"], best)


def _status_error(status: int, message: str) -> RequestRejected | EngineUnavailable:
    """Return RequestRejected for statuses in `CLIENT_ERRORS`, else EngineUnavailable."""
    return RequestRejected(message) if status in CLIENT_ERRORS else EngineUnavailable(message)


def _error_text(content: bytes) -> str | None:
    """Return vLLM's error message, None for another body."""
    try:
        return str(orjson.loads(content)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return None


def _data_url(image: bytes) -> str:
    kind = next((name for magic, name in IMAGE_TYPES.items() if image.startswith(magic)), "png")
    return f"data:image/{kind};base64,{b64encode(image).decode()}"


def parse_models(content: bytes) -> Sequence[Mapping[str, Any]]:
    """Parse the body of `GET /v1/models`. Raises EngineUnavailable for an unknown format."""
    try:
        models = orjson.loads(content)["data"]
    except (ValueError, KeyError, TypeError) as error:
        raise EngineUnavailable(f"no list of models: {content[:200].decode(errors='replace')}") from error
    return list(models)


def find_model(content: bytes, model: str | None, base: str) -> dict[str, Any]:
    """Return the entry of `model` in a list of models, by default the first. Raises EngineUnavailable without it.

    vLLM names no length for a LoRA adapter, which has that of its model.
    """
    cards = {card["id"]: card for card in parse_models(content)}
    model = model or next(iter(cards), None)
    if model not in cards:
        raise EngineUnavailable(f"{base} serves {', '.join(cards) or 'nothing'}, not {model}")
    card = cards[model]
    parent = cards.get(card.get("parent") or "", {})
    return {**card, "max_model_len": card.get("max_model_len") or parent.get("max_model_len")}
