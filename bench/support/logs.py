"""Logs like those of real responses: words of these docs, token by token, at the pace of a model, from the event writer."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson

from responses_app.protocol.deltas import ReasoningDelta, TextDelta
from responses_app.protocol.writer import Writer
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.execute.response_object import initial_response, usage
from responses_app.runs.ids import new_id
from responses_app.runs.models import ServedModel
from responses_app.store.log.records import EventFrame

ROOT = Path(__file__).resolve().parents[2]
# About how the vocabularies of models cut English: a word with its space, a long one in two, signs by themselves.
TOKEN = re.compile(r" ?[A-Za-z]{1,9}| ?\d{1,3}|\s+| ?[^\w\s]+|.")
NOW = 1_790_000_000


@cache
def words() -> Sequence[str]:
    """All tokens of the documentation."""
    pages = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
    return TOKEN.findall("\n".join(page.read_text() for page in pages))


def log(size: int, chance: random.Random, logprobs: int | None = None, pace: float = 20.0) -> list[EventFrame]:
    """The log of a response with `size` deltas: a fifth of them reasoning, the rest a message; `pace` is milliseconds per token."""
    return list(_timed(_events(size, chance, logprobs), chance, pace))


def _events(size: int, chance: random.Random, logprobs: int | None) -> list[dict[str, Any]]:
    order = CreateRequest("bench", 0, "gpt-oss-20b", [], logprobs=logprobs)
    # A log needs no engine.
    model = ServedModel("gpt-oss-20b", SimpleNamespace(), "", {})
    writer = Writer(initial_response(order, model, new_id("resp_"), NOW), new_id)
    at = chance.randrange(len(words()) - size)
    tokens = words()[at : at + size]
    events = writer.open()
    for place, word in enumerate(tokens):
        is_reasoning = place < size // 5
        events += writer.write(ReasoningDelta(word) if is_reasoning else TextDelta(word, _logprobs(word, logprobs, chance)))
    return events + writer.complete(NOW + 10, usage(50, 0, size, size // 5))


def _logprobs(word: str, count: int | None, chance: random.Random) -> list[dict[str, Any]]:
    def one(text: str) -> dict[str, Any]:
        return {"token": text, "logprob": -chance.expovariate(1.0), "bytes": list(text.encode())}

    others = [one(chance.choice(words())) for _ in range(count or 0)]
    return [] if count is None else [{**one(word), "top_logprobs": others}]


def _timed(events: Sequence[dict[str, Any]], chance: random.Random, pace: float) -> Iterator[EventFrame]:
    ms = 0.0
    for event in events:
        if event["type"].endswith(".delta"):
            ms += max(chance.gauss(pace, pace / 10), 1.0)
        yield EventFrame(event["sequence_number"], event["type"], orjson.dumps(event), int(ms))


def born() -> datetime:
    """When the responses of these logs were made."""
    return datetime.fromtimestamp(NOW, UTC)
