"""The fewest of the oldest items are left out, in a few steps."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from dataclasses import replace
from datetime import date
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from responses_app.dialects.base import Dialect, Turn
from responses_app.dialects.text.budget import Budget, TooLong
from responses_app.engines.replay.engine import ReplayEngine
from responses_app.runs.prepare.length.truncation import PromptRenderer, Truncation, TruncationPolicy, droppable, size
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


def prompts(dialect: Any, window: int = 1 << 20) -> PromptRenderer:
    return PromptRenderer(ReplayEngine([], max_model_len=window), dialect, {}, measure=True, project="p")


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
    truncated, prompt = asyncio.run(Truncation(prompts(dialect), turn, most).search())
    assert len(turn.items) - len(truncated.items) == fewest(dialect, turn, most)
    assert list(prompt.tokens) == dialect.render(replace(truncated, token_cache=None))


def truncated(dialect: Any, turn: Turn, most: int, policy: TruncationPolicy, window: int = 1 << 20) -> Turn:
    """Return the turn without the items that the policy drops."""
    return asyncio.run(Truncation(prompts(dialect, window + 1), turn, most, policy).search())[0]


@pytest.mark.parametrize("name", DIALECTS)
@given(
    texts=st.lists(st.integers(0, 60).map(lambda n: "word " * n), min_size=14, max_size=40),
    step=st.sampled_from([0.05, 0.125, 0.25, 0.5]),
)
@pytest.mark.slow
@settings(max_examples=10, deadline=None)
def test_prompt_of_a_growing_conversation_begins_at_few_items(name: str, texts: list[str], step: float) -> None:
    dialect, window = DIALECTS[name], 400
    policy, width = TruncationPolicy(drops=True, step=step), int(window * step)
    sizes = [0, *accumulate(size(item) for item in turn_of(texts).items)]
    grid = {bisect_left(sizes, multiple) for multiple in range(width, sizes[-1] + width, width)}
    before = 0
    for count in range(4, len(texts) + 1):
        turn = turn_of(texts[:count])
        if len(dialect.render(turn)) <= window:
            continue
        shorter = truncated(dialect, turn, window, policy, window)
        gone = len(turn.items) - len(shorter.items)
        assert shorter.items == turn.items[gone:]
        assert max(before, fewest(dialect, turn, window)) <= gone
        assert gone in grid or gone == len(droppable(turn.items))
        before = gone


@pytest.mark.parametrize("value", ["auto", "disabled", {"type": "retention_ratio", "retention_ratio": 0.75}])
def test_policy_of_the_field(value: Any) -> None:
    policy = TruncationPolicy.of(value)
    assert policy.drops == (value != "disabled")
    assert policy.step == (0.125 if isinstance(value, str) else 0.25)


def test_droppable_items_are_limited_also_where_the_prompt_fits() -> None:
    turn = turn_of(["word " * 50] * 10)
    least = len(HARMONY.render(replace(turn, items=turn.items[-2:])))
    limits = {"type": "retention_ratio", "retention_ratio": 1.0, "token_limits": {"post_instructions": 120}}
    shorter = truncated(HARMONY, turn, 1 << 19, TruncationPolicy.of(limits))
    assert least < len(HARMONY.render(shorter)) <= least + 120
    assert len(shorter.items) == 4


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("most", [4096, 60_000])
def test_twenty_thousand_messages_take_a_few_steps(name: str, most: int) -> None:
    dialect = CountingDialect(DIALECTS[name])
    turn = turn_of([f"Message {n} of a long conversation." for n in range(20_000)])
    began = time.process_time()
    truncated, prompt = asyncio.run(Truncation(prompts(dialect), turn, most).search())
    assert prompt.length <= most
    assert most - prompt.length < 100
    assert len(truncated.items) < len(turn.items)
    assert dialect.calls <= 14
    assert dialect.tokens < 14 * most
    assert time.process_time() - began < 30


def test_too_long_required_items_are_refused_before_rendering() -> None:
    turn = turn_of(["a", "b", "c"], rule="long rule " * 1_000_000)
    with pytest.raises(TooLong):
        asyncio.run(Truncation(prompts(HARMONY, 5001), turn, 4000).search())
