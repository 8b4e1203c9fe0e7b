"""The wire form of the log-probabilities of one token."""

from __future__ import annotations

from collections.abc import Callable

from responses_app.engine_interface import Logprob
from responses_app.protocol.deltas import Json


def to_wire(logprob: Logprob, spell: Callable[[int], bytes]) -> Json:
    """`{token, logprob, bytes, top_logprobs}` of a token; `spell` gives the bytes of a token id (§3.13)."""
    top = [_entry(token, value, spell) for token, value in logprob.top]
    return {**_entry(logprob.token, logprob.logprob, spell), "top_logprobs": top}


def _entry(token: int, logprob: float, spell: Callable[[int], bytes]) -> dict[str, object]:
    raw = spell(token)
    return {"token": raw.decode("utf-8", "replace"), "logprob": logprob, "bytes": list(raw)}
