"""Codec of the messages between a web process and an engine worker: requests, chunks and errors."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from responses_app.engine_interface import (
    Chunk,
    Constraint,
    EngineError,
    EngineOverloaded,
    EngineUnavailable,
    EngineUnreachable,
    GenerateRequest,
    Logprob,
    RequestRejected,
    Sampling,
)

# Messages of a web process. Each begins with its kind and, but for PING, the number of the stream.
GENERATE, ABORT, COUNT, PING = "generate", "abort", "count", "ping"
# Messages of the worker. MODEL is the first message of a connection.
MODEL, CHUNK, ERROR, COUNTED, PONG = "model", "chunk", "error", "counted", "pong"

# Fields of a request that a frame carries as bytes, or in a form of their own.
_SEPARATE = frozenset({"prompt", "images", "sampling", "constraint", "used_engines"})
_PLAIN = tuple(field.name for field in fields(GenerateRequest) if field.name not in _SEPARATE)
_DEFAULTS = {name: value for name, value in asdict(Sampling(1)).items() if name != "max_tokens"}
# The token ids of a prompt: unsigned, four bytes each.
_TOKENS = "I"
# From the class with the most parents to the base class.
_ERRORS: Mapping[str, type[EngineError]] = {
    "rejected": RequestRejected,
    "overloaded": EngineOverloaded,
    "unreachable": EngineUnreachable,
    "unavailable": EngineUnavailable,
}


def encode_request(request: GenerateRequest) -> tuple[dict[str, Any], bytes]:
    """Return the fields of a request, and the bytes behind the message: the prompt, then the images."""
    values: dict[str, Any] = {name: getattr(request, name) for name in _PLAIN}
    sampling = asdict(request.sampling)
    # A worker of an earlier version does not know newer fields, and needs the bias.
    values["sampling"] = {name: value for name, value in sampling.items() if name == "bias" or value != _DEFAULTS.get(name)}
    if request.constraint is not None:
        values["constraint"] = [request.constraint.kind, request.constraint.value]
    values["sizes"] = [len(image) for image in request.images]
    values["tokens"] = len(request.prompt)
    return values, b"".join((_token_bytes(request.prompt), *request.images))


def _token_bytes(tokens: Sequence[int]) -> bytes:
    try:
        return array(_TOKENS, tokens).tobytes()
    except (OverflowError, TypeError) as error:
        raise RequestRejected(f"a prompt token is not a token id: {error}") from error


def decode_request(values: dict[str, Any], body: bytes) -> GenerateRequest:
    """Return the request that `encode_request` has encoded. Raises KeyError, TypeError, ValueError for other values."""
    prompt = array(_TOKENS)
    at = values.pop("tokens") * prompt.itemsize
    prompt.frombytes(body[:at])
    images: list[bytes] = []
    for size in values.pop("sizes"):
        images.append(body[at : at + size])
        at += size
    sampling = values.pop("sampling")
    sampling["bias"] = {int(token): bias for token, bias in sampling["bias"].items()}
    constraint = values.pop("constraint", None)
    return GenerateRequest(
        prompt=prompt.tolist(),
        images=images,
        sampling=Sampling(**sampling),
        constraint=Constraint(*constraint) if constraint else None,
        **values,
    )


def encode_chunk(stream: int, chunk: Chunk) -> list[Any]:
    """Return the message of a chunk; most chunks have tokens alone."""
    if chunk.finish is None and chunk.cached is None and chunk.prompt is None and not chunk.logprobs:
        return [CHUNK, stream, chunk.tokens]
    logprobs = [(entry.token, entry.logprob, entry.top) for entry in chunk.logprobs]
    return [CHUNK, stream, chunk.tokens, logprobs, chunk.finish, chunk.cached, chunk.prompt]


def decode_chunk(message: Sequence[Any]) -> Chunk:
    """Return the chunk of a message."""
    if len(message) == 3:
        return Chunk(message[2])
    _, _, tokens, logprobs, finish, cached, prompt = message
    entries = [Logprob(token, logprob, [(other, value) for other, value in top]) for token, logprob, top in logprobs]
    return Chunk(tokens, entries, finish, cached, prompt)


def join_chunks(first: Chunk, second: Chunk) -> Chunk:
    """Return one chunk for two chunks that follow each other."""
    return Chunk(
        [*first.tokens, *second.tokens],
        [*first.logprobs, *second.logprobs],
        second.finish,
        second.cached if first.cached is None else first.cached,
        second.prompt if first.prompt is None else first.prompt,
    )


def encode_error(stream: int, error: EngineError) -> list[Any]:
    """Return the message of an error that ends a stream."""
    kind = next(name for name, kind in _ERRORS.items() if isinstance(error, kind))
    return [ERROR, stream, kind, str(error), getattr(error, "retry_after_s", None)]


def decode_error(message: Sequence[Any]) -> EngineError:
    """Return the error of a message."""
    _, _, kind, text, retry_after_s = message
    return EngineOverloaded(text, retry_after_s) if kind == "overloaded" else _ERRORS[kind](text)
