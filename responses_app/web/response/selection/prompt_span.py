"""Tokens of an item in the stored prompts: the first prompt that has the item, and the place in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from responses_app.models import Response
from responses_app.runs import manager
from responses_app.store.log.rows.round_prompts import load_rounds, shared_length

Decode: TypeAlias = Callable[[list[int]], str]
# Shorter texts are found in too many places.
MIN_CHARS: Final = 2


@dataclass(frozen=True, slots=True)
class PromptSpan:
    """Tokens `first` to `last`, counted from 0, in the prompt of the round `round`, counted from 1.

    With `is_output` they are behind that prompt, as the model wrote them. Without `is_exact` they are counted by deltas.
    """

    round: int
    first: int
    last: int
    is_output: bool = False
    is_exact: bool = True


def decoder(row: Response) -> Decode | None:
    """Return the tokenizer of the response's model as a function; None if the server does not serve the model."""
    served = manager.current().served.get(row.model)
    return None if served is None or served.dialect is None else served.dialect.token_text


def prompt_span(row: Response, item: Mapping[str, Any], round_number: int) -> PromptSpan | None:
    """Find an item in the prompts: an item of the input with the round 0, or the output of a round, which the next prompt has.

    None if no prompt has the text of the item, as that of the last round, or if the model is not served.
    """
    decode = decoder(row)
    # A round without input tokens only ran tools and is no round of the pages.
    prompts = [stored.prompt for stored in load_rounds(row.pk) if stored.input_tokens != 0] if decode else []
    for index in range(round_number, len(prompts)):
        start = shared_length(prompts[index - 1], prompts[index]) if index and round_number else 0
        for needle in _texts(item):
            place = _find(prompts[index][start:], needle, decode) if decode else None
            if place:
                return PromptSpan(index + 1, start + place[0], start + place[1])
        if not round_number:
            return None
    return None


def _find(tokens: Sequence[int], needle: str, decode: Decode) -> tuple[int, int] | None:
    """Return the first and the last token of the last occurrence of `needle`."""
    place = decode(list(tokens)).rfind(needle)
    if place < 0:
        return None
    return _token_at(tokens, place, decode), _token_at(tokens, place + len(needle) - 1, decode)


def _token_at(tokens: Sequence[int], place: int, decode: Decode) -> int:
    """Return the token of the character at `place`, by bisection over the lengths of decoded prefixes."""
    low, high = 0, len(tokens) - 1
    while low < high:
        middle = (low + high) // 2
        if len(decode(list(tokens[: middle + 1]))) > place:
            high = middle
        else:
            low = middle + 1
    return low


def _texts(item: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts by which a prompt may have the item, the most exact first."""
    for key in ("arguments", "input", "code", "output"):
        value = item.get(key)
        if isinstance(value, str) and len(value) >= MIN_CHARS:
            yield value
            yield from _spellings(value)
    content = item.get("content")
    parts = [{"text": content}] if isinstance(content, str) else content or ()
    for part in parts:
        text = str(part.get("text") or "").strip() if isinstance(part, Mapping) else ""
        if len(text) >= MIN_CHARS:
            yield text


def _spellings(value: str) -> Iterator[str]:
    """Yield the same JSON with and without spaces."""
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return
    yield json.dumps(parsed, ensure_ascii=False)
    yield json.dumps(parsed, ensure_ascii=False, separators=(",", ":"))
