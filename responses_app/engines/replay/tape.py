"""The tape that the scripted engine replays: one line per generation, in Python or as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeAlias

from responses_app.engine_interface import Logprob

Match: TypeAlias = Sequence[int] | Callable[[Sequence[int]], bool] | None


class InvalidTape(ValueError):
    """A line of a tape file cannot be read; the message names file and line."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """One chunk: these token ids leave together, as after one engine step (or one speculative burst)."""

    tokens: Sequence[int]
    logprobs: Sequence[Logprob] = ()


@dataclass(frozen=True, slots=True)
class Delay:
    """Silence for so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Fault:
    """The generation ends here with an exception: `down` is EngineDown, `bad` is BadPrompt.

    After `down` the whole engine stays away for `seconds`: `alive` says no, and new requests fail without using up a line.
    """

    kind: Literal["down", "bad"]
    message: str = "the tape says so"
    seconds: float = 0.0


Step: TypeAlias = Tokens | Delay | Fault


@dataclass(frozen=True, slots=True)
class Recording:
    """One scripted generation.

    `match` chooses the request: token ids that its prompt must contain in a row, or (from Python) a predicate of the
    prompt; None takes any request. `cached` is what the engine claims to have found in its prefix cache.
    """

    steps: Sequence[Step]
    finish: Literal["stop", "length"] = "stop"
    cached: int | None = None
    match: Match = None

    def fits(self, prompt: Sequence[int]) -> bool:
        """Whether this line answers a request with that prompt."""
        if self.match is None:
            return True
        if callable(self.match):
            return self.match(prompt)
        return _contains(prompt, self.match)


def recording(
    *groups: Sequence[int], finish: Literal["stop", "length"] = "stop", cached: int | None = None, match: Match = None
) -> Recording:
    """The usual line: these groups of token ids, one chunk each, without delays or faults."""
    return Recording([Tokens(group) for group in groups], finish, cached, match)


def read(path: str | Path) -> list[Recording]:
    """The lines of a tape file: JSON lines, empty ones skipped. Raises BadTape, or OSError if there is no such file.

    One generation per line; everything but `chunks` is optional:

        {"match": [17, 4], "chunks": [{"tokens": [5, 6]}, {"delay": 0.1}, {"tokens": [7]}], "finish": "stop", "cached": 16}
        {"chunks": [{"tokens": [5], "logprobs": [[5, -0.1, [[5, -0.1], [9, -2.4]]]]}], "finish": "length"}
        {"chunks": [{"tokens": [5]}, {"fault": "down", "message": "out of memory", "seconds": 2.5}]}

    A logprob is `[token, logprob, [[token, logprob], ...]]`, one per token of its chunk.
    """
    numbered = enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1)
    return [_line_of(text, f"{path}:{number}") for number, text in numbered if text.strip()]


def _line_of(text: str, place: str) -> Recording:
    try:
        return _line(json.loads(text))
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidTape(f"{place}: {error!r}") from error


def _line(raw: Mapping[str, Any]) -> Recording:
    _expect(raw, {"match", "chunks", "finish", "cached"})
    finish = raw.get("finish", "stop")
    if finish not in ("stop", "length"):
        raise ValueError(f"finish is {finish!r}, expected 'stop' or 'length'")
    match = _ids(raw["match"]) if raw.get("match") is not None else None
    return Recording([_step(step) for step in raw["chunks"]], finish, raw.get("cached"), match)


def _step(raw: Mapping[str, Any]) -> Step:
    kinds = [kind for kind in _STEPS if kind in raw]
    if len(kinds) != 1:
        raise ValueError(f"a chunk is one of {', '.join(_STEPS)}, got {sorted(raw)}")
    return _STEPS[kinds[0]](raw)


def _tokens(raw: Mapping[str, Any]) -> Tokens:
    _expect(raw, {"tokens", "logprobs"})
    logprobs = tuple(Logprob(token, value, [(t, p) for t, p in top]) for token, value, top in raw.get("logprobs", ()))
    if logprobs and len(logprobs) != len(raw["tokens"]):
        raise ValueError(f"{len(raw['tokens'])} tokens with {len(logprobs)} logprobs")
    return Tokens(_ids(raw["tokens"]), logprobs)


def _delay(raw: Mapping[str, Any]) -> Delay:
    _expect(raw, {"delay"})
    return Delay(float(raw["delay"]))


def _fault(raw: Mapping[str, Any]) -> Fault:
    _expect(raw, {"fault", "message", "seconds"})
    if raw["fault"] not in ("down", "bad"):
        raise ValueError(f"fault is {raw['fault']!r}, expected 'down' or 'bad'")
    return Fault(raw["fault"], raw.get("message", Fault("down").message), float(raw.get("seconds", 0)))


_STEPS: Mapping[str, Callable[[Mapping[str, Any]], Step]] = {"tokens": _tokens, "delay": _delay, "fault": _fault}


def _ids(raw: Any) -> list[int]:
    if not isinstance(raw, list) or not all(type(token) is int for token in raw):
        raise ValueError(f"expected a list of token ids, got {raw!r}")
    return raw


def _expect(raw: Mapping[str, Any], known: Iterable[str]) -> None:
    if unknown := set(raw) - set(known):
        raise ValueError(f"unknown {', '.join(sorted(unknown))}; known here: {', '.join(sorted(known))}")


def _contains(prompt: Sequence[int], wanted: Sequence[int]) -> bool:
    width, target = len(wanted), list(wanted)
    return any(list(prompt[at : at + width]) == target for at in range(len(prompt) - width + 1))


def tokens_of(lines: Iterable[Recording]) -> list[int]:
    """All token ids of these lines, in order: what a listener will have heard at the end."""
    steps = chain.from_iterable(line.steps for line in lines)
    return [token for step in steps if isinstance(step, Tokens) for token in step.tokens]
