"""Wire format of log-probabilities."""

from __future__ import annotations

from collections.abc import Callable

from responses_app.engine_interface import Logprob
from responses_app.protocol.deltas import Json


def to_wire(logprob: Logprob, token_bytes: Callable[[int], bytes]) -> Json:
    """Convert to `{token, logprob, bytes, top_logprobs}`; `token_bytes` maps a token id to bytes."""
    top = [_entry(token, value, token_bytes) for token, value in logprob.top]
    return {**_entry(logprob.token, logprob.logprob, token_bytes), "top_logprobs": top}


def _entry(token: int, logprob: float, token_bytes: Callable[[int], bytes]) -> dict[str, object]:
    raw = token_bytes(token)
    return {"token": raw.decode("utf-8", "replace"), "logprob": logprob, "bytes": list(raw)}
