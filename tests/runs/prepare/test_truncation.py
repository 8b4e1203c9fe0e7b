"""The fewest of the oldest items are left out, in a few steps."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from responses_app.dialects.base import Dialect, Turn
from responses_app.dialects.text.budget import Budget, TooLong
from responses_app.engines.replay.engine import ReplayEngine
from responses_app.runs.prepare.length.prompt import PromptRenderer
from responses_app.runs.prepare.length.truncation import Truncation, droppable
from tests.support.api.case import HARMONY
from tests.support.dialects.parser_driver import chat, demo_vocabulary

DIALECTS: dict[str, Dialect] = {"harmony": HARMONY, "demo": chat(vocabulary=demo_vocabulary())}


class CountingDialect:
    """Dialect that counts its calls of `render` and the rendered tokens."""

    def __init__(self, inner: Dialect) -> None:
        self.inner, self.calls, self.tokens = inner, 0, 0

    def render(self, turn: Turn, budget: Budget | None = None) -> list[int]:
        self.calls += 1
        budget = budget or Budget()
        try:
            return self.inner.render(turn, budget)
        finally:
            self.tokens += budget.spent


def turn_of(texts: list[str], rule: str = "") -> Turn:
    roles = ("user", "assistant")
    items: list[dict[str, Any]] = [
        {"type": "message", "id": f"m{n}", "role": roles[n % 2], "content": [{"type": "input_text", "text": text}]}
        for n, text in enumerate(texts)
    ]
    return Turn(items=items, today=date(2026, 1, 1), instructions=rule)


def prompts(dialect: Any) -> PromptRenderer:
    return PromptRenderer(ReplayEngine([], max_model_len=1 << 20), dialect, {}, measure=True, project="p")


def fewest(dialect: Dialect, turn: Turn, most: int) -> int:
    """How many units have to go, found by trying in turn."""
    units = droppable(turn.items)
    for count in range(1, len(units) + 1):
        gone = {place for unit in units[:count] for place in unit}
        shorter = replace(turn, items=[item for place, item in enumerate(turn.items) if place not in gone])
        if len(dialect.render(shorter)) <= most:
            return count
    return len(units)


@pytest.mark.parametrize("name", DIALECTS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_no_item_more_than_needed_is_left_out(name: str, data: st.DataObject) -> None:
    dialect = DIALECTS[name]
    texts = data.draw(st.lists(st.integers(0, 60).map(lambda n: "word " * n) | st.just("é" * 90), min_size=2, max_size=25))
    turn = turn_of(texts)
    whole = len(dialect.render(turn))
    most = data.draw(st.integers(whole // 3, whole - 1))
    truncated, prompt = asyncio.run(Truncation(prompts(dialect), turn, most, 1 << 20).search())
    assert len(turn.items) - len(truncated.items) == fewest(dialect, turn, most)
    assert list(prompt.tokens) == dialect.render(replace(truncated, token_cache=None))


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("most", [4096, 60_000])
def test_twenty_thousand_messages_take_a_few_steps(name: str, most: int) -> None:
    dialect = CountingDialect(DIALECTS[name])
    turn = turn_of([f"Message {n} of a long conversation." for n in range(20_000)])
    began = time.process_time()
    truncated, prompt = asyncio.run(Truncation(prompts(dialect), turn, most, 1 << 20).search())
    assert prompt.length <= most
    assert most - prompt.length < 100
    assert len(truncated.items) < len(turn.items)
    assert dialect.calls <= 14
    assert dialect.tokens < 14 * most
    assert time.process_time() - began < 30


def test_too_long_required_items_are_refused_before_rendering() -> None:
    turn = turn_of(["a", "b", "c"], rule="long rule " * 1_000_000)
    with pytest.raises(TooLong):
        asyncio.run(Truncation(prompts(HARMONY), turn, 4000, 5000).search())
