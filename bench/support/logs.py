"""Logs of responses for benchmarks: words of the documentation, token by token, at the pace of a model."""

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
from responses_app.protocol.encoding import EventFrame
from responses_app.protocol.writer import Writer
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.execute.response_object import initial_response, usage
from responses_app.runs.ids import new_id
from responses_app.runs.models import ServedModel

ROOT = Path(__file__).resolve().parents[2]
# About how the vocabularies of models cut English: a word with its space, a long one in two, signs by themselves.
TOKEN = re.compile(r" ?[A-Za-z]{1,9}| ?\d{1,3}|\s+| ?[^\w\s]+|.")
NOW = 1_790_000_000


@cache
def words() -> Sequence[str]:
    """Split the documentation into tokens."""
    pages = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
    return TOKEN.findall("\n".join(page.read_text() for page in pages))


def make_log(size: int, chance: random.Random, pace_ms: float = 20.0) -> list[EventFrame]:
    """Make the log of a response with `size` deltas: a fifth of these is reasoning, the rest a message."""
    return list(_timed(_events(size, chance), chance, pace_ms))


def _events(size: int, chance: random.Random) -> list[dict[str, Any]]:
    request = CreateRequest("bench", 0, "gpt-oss-20b", [])
    # A log needs no engine.
    model = ServedModel("gpt-oss-20b", SimpleNamespace(), "", {})
    writer = Writer(initial_response(request, model, new_id("resp_"), NOW), new_id)
    start = chance.randrange(len(words()) - size)
    events = writer.open()
    for index, word in enumerate(words()[start : start + size]):
        events += writer.write(ReasoningDelta(word) if index < size // 5 else TextDelta(word))
    return events + writer.complete(NOW + 10, usage(50, 0, size, size // 5))


def _timed(events: Sequence[dict[str, Any]], chance: random.Random, pace_ms: float) -> Iterator[EventFrame]:
    ms = 0.0
    for event in events:
        if event["type"].endswith(".delta"):
            ms += max(chance.gauss(pace_ms, pace_ms / 10), 1.0)
        yield EventFrame(event["sequence_number"], event["type"], orjson.dumps(event), int(ms))


def created_at() -> datetime:
    """Return the time of creation of these responses."""
    return datetime.fromtimestamp(NOW, UTC)
