"""Summaries of reasoning on the pages: a copy is shown once, and its deltas are grouped with those of the text."""

from __future__ import annotations

from typing import Any

import pytest

from responses_app.store.log.event_index import EventHeader
from responses_app.web.render.item_blocks import ItemRenderer
from responses_app.web.response.timelines.event_groups import group

TEXT = [{"type": "reasoning_text", "text": "Let me see."}]
COPY = [{"type": "summary_text", "text": "Let me see."}]
SHORT = [{"type": "summary_text", "text": "Looks."}]


@pytest.mark.parametrize(
    ("summary", "content", "shown"),
    [(COPY, TEXT, ["Let me see."]), ([], TEXT, ["Let me see."]), (SHORT, TEXT, ["<p>Looks.</p>", "Let me see."])],
)
def test_copy_of_the_reasoning_is_shown_once(summary: Any, content: Any, shown: list[str]) -> None:
    (block,) = ItemRenderer().blocks([{"type": "reasoning", "summary": summary, "content": content}])
    assert [str(part.html or part.text).strip() for part in block.parts] == shown


def test_deltas_of_a_copy_are_grouped_with_the_text() -> None:
    kinds = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")
    headers = [EventHeader(number, kinds[number % 2], 10 * number) for number in range(40)]
    (drawn_group,) = group(headers)
    assert (drawn_group.count, drawn_group.first.type) == (40, kinds[0])
    assert drawn_group.rate == pytest.approx(19 * 1000 / 390)
