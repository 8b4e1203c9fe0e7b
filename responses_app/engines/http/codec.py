"""The body of vLLM's `POST /inference/v1/generate`, and the events that answer it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from responses_app.engine_interface import Chunk, EngineUnavailable, Finish, GenerateRequest, Logprob, RequestRejected
from responses_app.engines.vllm.params import FINISHES, sampling_fields, structured_fields

# Statuses that blame the request itself. All others (no such endpoint, wrong key, too busy, broken) blame the engine.
REQUESTS_FAULT = frozenset({400, 413, 422})

# What vLLM puts in front of the id of a request to this endpoint; its abort endpoint wants to hear it.
ENGINE_ID_PREFIX = "generate-tokens-"

MAX_LOGPROBS = 20

# How vLLM's EngineDeadError begins, which is nobody's grammar.
DEAD_CORE = "EngineCore encountered an issue"

IMAGE_TYPES: Mapping[bytes, str] = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}


def body(request: GenerateRequest, model: str | None, priorities: bool) -> bytes:
    """The JSON body. Raises BadPrompt if it cannot be written as such."""
    params = sampling_fields(request.sampling) | {"logprobs": _asked(request.sampling.logprobs)}
    if request.constraint:
        params["structured_outputs"] = structured_fields(request.constraint)
    fields: dict[str, Any] = {
        "request_id": request.id,
        "model": model,
        "token_ids": list(request.prompt),
        "sampling_params": params,
        "stream": True,
        "stream_options": {"include_usage": True},
        "reasoning_ended": True,  # A constraint holds from the first token, whatever reasoning parser the server has.
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


def _asked(logprobs: int | None) -> int | None:
    """One more alternative than wanted, as far as vLLM's default limit goes: its answer counts the chosen token as one."""
    return min(logprobs + 1, max(logprobs, MAX_LOGPROBS)) if logprobs else logprobs


def error_for(status: int, content: bytes) -> RequestRejected | EngineUnavailable:
    """The exception for an answer that is not a stream."""
    return _blamed_parameter(status, f"HTTP {status}: {_message(content)}")


class GenerateStreamParser:
    """Reads the events of one generation from bytes in any cut.

    Token events that arrive in one piece become one chunk. `finish` is kept back for the usage, which vLLM sends behind it.
    """

    def __init__(self, request: GenerateRequest) -> None:
        self._wanted = request.sampling.logprobs
        self._constrained = request.constraint is not None
        self._rest = b""
        self._finish: Finish | None = None
        self._cached: int | None = None
        self._prompt: int | None = None
        self._begun = False

    def feed(self, data: bytes) -> Chunk | None:
        """The tokens that `data` completes, if any. Raises BadPrompt, EngineDown for an error event."""
        tokens: list[int] = []
        logprobs: list[Logprob] = []
        for event in self._events(data):
            for choice in event.get("choices", ()):
                tokens += choice.get("token_ids") or ()
                logprobs += self._logprobs(choice)
                self._end(choice.get("finish_reason"))
            self._count(event.get("usage"))
        if not tokens:
            return None
        self._begun = True
        return Chunk(tuple(tokens), tuple(logprobs))

    def last(self) -> Chunk:
        """The chunk that ends the generation. Raises EngineDown if the server has not said how it ended."""
        if self._finish is None:
            raise EngineUnavailable("the stream broke off")
        return Chunk(finish=self._finish, cached=self._cached, prompt=self._prompt)

    def _events(self, data: bytes) -> Iterator[Mapping[str, Any]]:
        *events, self._rest = (self._rest + data).replace(b"\r\n", b"\n").split(b"\n\n")
        for event in events:
            if not event.startswith(b"data:"):
                continue  # A comment that keeps the connection warm.
            payload = event[5:].strip()
            if payload == b"[DONE]":
                return
            parsed = orjson.loads(payload)
            if error := parsed.get("error"):
                raise self._failed(error)
            yield parsed

    def _failed(self, error: Mapping[str, Any]) -> RequestRejected | EngineUnavailable:
        """An error before the first token of a constrained request is a grammar that did not compile, whatever the code says."""
        code = error.get("code")
        if self._begun or not isinstance(code, int) or str(error.get("message")).startswith(DEAD_CORE):
            code = 500
        elif self._constrained:
            code = 400
        return _blamed_parameter(code, str(error.get("message")))

    def _end(self, reason: str | None) -> None:
        if reason == "error":
            raise EngineUnavailable("vLLM gave up on the request")
        if reason is not None:
            self._finish = FINISHES[reason]

    def _count(self, usage: Mapping[str, Any] | None) -> None:
        """The details are only there if the server was started with `--enable-prompt-tokens-details`."""
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


def _blamed_parameter(status: int, message: str) -> RequestRejected | EngineUnavailable:
    return RequestRejected(message) if status in REQUESTS_FAULT else EngineUnavailable(message)


def _message(content: bytes) -> str:
    """vLLM's own words if it is vLLM that answers, else the beginning of what a proxy may have said."""
    try:
        return str(orjson.loads(content)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return content[:200].decode(errors="replace")


def _data_url(image: bytes) -> str:
    kind = next((name for magic, name in IMAGE_TYPES.items() if image.startswith(magic)), "png")
    return f"data:image/{kind};base64,{b64encode(image).decode()}"


def parse_models(content: bytes) -> Sequence[Mapping[str, Any]]:
    """The models of a `GET /v1/models`. Raises EngineDown if that is not what it is."""
    try:
        models = orjson.loads(content)["data"]
    except (ValueError, KeyError, TypeError) as error:
        raise EngineUnavailable(f"no list of models: {content[:200].decode(errors='replace')}") from error
    return list(models)
