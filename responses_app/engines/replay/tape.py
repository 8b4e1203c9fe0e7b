"""Tapes of the replay engine: a recording per generation, built in Python or read from JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from responses_app.engine_interface import Logprob

Match: TypeAlias = Sequence[int] | Callable[[Sequence[int]], bool] | None


class InvalidTape(ValueError):
    """A line of a tape file is invalid; the message names file and line."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """A chunk: token ids sent together, as after an engine step (or a speculative burst)."""

    tokens: Sequence[int]
    logprobs: Sequence[Logprob] = ()


@dataclass(frozen=True, slots=True)
class Delay:
    """Pause of `seconds`."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Hold:
    """Pause until there is a file at `path`."""

    path: Path


@dataclass(frozen=True, slots=True)
class Fault:
    """End of the generation with an exception: `down` raises EngineUnavailable, `bad` RequestRejected, `busy` EngineOverloaded.

    After `down` the whole engine is unavailable for `seconds`: `is_healthy` returns False, and new requests fail without using
    a recording. `busy` asks for a pause of `seconds`.
    """

    kind: Literal["down", "bad", "busy"]
    message: str = "fault on the tape"
    seconds: float = 0.0


Step: TypeAlias = Tokens | Delay | Hold | Fault


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded generation.

    `match` selects the request: token ids contained in its prompt as a contiguous sequence, or (in Python) a predicate of the
    prompt; None matches every request. `cached` is the number of prompt tokens reported as cached.
    """

    steps: Sequence[Step]
    finish: Literal["stop", "length"] = "stop"
    cached: int | None = None
    match: Match = None

    def matches(self, prompt: Sequence[int]) -> bool:
        """Return True if the recording matches the prompt."""
        if self.match is None:
            return True
        if callable(self.match):
            return self.match(prompt)
        return _contains(prompt, self.match)


def recording(
    *groups: Sequence[int], finish: Literal["stop", "length"] = "stop", cached: int | None = None, match: Match = None
) -> Recording:
    """Create a recording of tokens alone: each group of token ids becomes a chunk."""
    return Recording([Tokens(group) for group in groups], finish, cached, match)


def read_tape(path: str | Path) -> list[Recording]:
    """Read the recordings of a tape file: JSON lines, empty lines skipped. Raises InvalidTape, or OSError for a missing file.

    Each line is a generation. Every key but `chunks` is optional:

        {"match": [17, 4], "chunks": [{"tokens": [5, 6]}, {"delay": 0.1}, {"tokens": [7]}], "finish": "stop", "cached": 16}
        {"chunks": [{"tokens": [5], "logprobs": [[5, -0.1, [[5, -0.1], [9, -2.4]]]]}], "finish": "length"}
        {"chunks": [{"tokens": [5]}, {"fault": "down", "message": "out of memory", "seconds": 2.5}]}
        {"chunks": [{"tokens": [5]}, {"until": "/tmp/a-file-that-exists-later"}, {"tokens": [6]}]}

    A logprob is `[token, logprob, [[token, logprob], ...]]`, one per token of its chunk.
    """
    numbered = enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1)
    return [_parse_line(text, f"{path}:{number}") for number, text in numbered if text.strip()]


def _parse_line(text: str, place: str) -> Recording:
    try:
        return _parse_recording(json.loads(text))
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidTape(f"{place}: {error!r}") from error


def _parse_recording(raw: Mapping[str, Any]) -> Recording:
    _check_keys(raw, {"match", "chunks", "finish", "cached"})
    finish = raw.get("finish", "stop")
    if finish not in ("stop", "length"):
        raise ValueError(f"finish is {finish!r}, expected 'stop' or 'length'")
    match = _parse_ids(raw["match"]) if raw.get("match") is not None else None
    return Recording([_parse_step(step) for step in raw["chunks"]], finish, raw.get("cached"), match)


def _parse_step(raw: Mapping[str, Any]) -> Step:
    kinds = [kind for kind in _STEPS if kind in raw]
    if len(kinds) != 1:
        raise ValueError(f"a chunk is one of {', '.join(_STEPS)}, got {sorted(raw)}")
    return _STEPS[kinds[0]](raw)


def _parse_tokens(raw: Mapping[str, Any]) -> Tokens:
    _check_keys(raw, {"tokens", "logprobs"})
    logprobs = tuple(Logprob(token, value, [(t, p) for t, p in top]) for token, value, top in raw.get("logprobs", ()))
    if logprobs and len(logprobs) != len(raw["tokens"]):
        raise ValueError(f"{len(raw['tokens'])} tokens with {len(logprobs)} logprobs")
    return Tokens(_parse_ids(raw["tokens"]), logprobs)


def _parse_delay(raw: Mapping[str, Any]) -> Delay:
    _check_keys(raw, {"delay"})
    return Delay(float(raw["delay"]))


def _parse_hold(raw: Mapping[str, Any]) -> Hold:
    _check_keys(raw, {"until"})
    return Hold(Path(raw["until"]))


def _parse_fault(raw: Mapping[str, Any]) -> Fault:
    _check_keys(raw, {"fault", "message", "seconds"})
    if raw["fault"] not in ("down", "bad", "busy"):
        raise ValueError(f"fault is {raw['fault']!r}, expected 'down', 'bad' or 'busy'")
    return Fault(raw["fault"], raw.get("message", Fault("down").message), float(raw.get("seconds", 0)))


_STEPS: Mapping[str, Callable[[Mapping[str, Any]], Step]] = {
    "tokens": _parse_tokens,
    "delay": _parse_delay,
    "until": _parse_hold,
    "fault": _parse_fault,
}


def _parse_ids(raw: Any) -> list[int]:
    if not isinstance(raw, list) or not all(type(token) is int for token in raw):
        raise ValueError(f"expected a list of token ids, got {raw!r}")
    return raw


def _check_keys(raw: Mapping[str, Any], known: Iterable[str]) -> None:
    if unknown := set(raw) - set(known):
        raise ValueError(f"unknown {', '.join(sorted(unknown))}; known here: {', '.join(sorted(known))}")


def _contains(prompt: Sequence[int], searched: Sequence[int]) -> bool:
    width, target = len(searched), list(searched)
    return any(list(prompt[at : at + width]) == target for at in range(len(prompt) - width + 1))
