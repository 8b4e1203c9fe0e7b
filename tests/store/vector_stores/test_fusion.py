"""Reciprocal rank fusion."""

from __future__ import annotations

import pytest

from responses_app.store.vector_stores.search import fuse


@pytest.mark.parametrize(
    ("rankings", "order"),
    [
        ([], []),
        ([[3, 1, 2]], [3, 1, 2]),
        ([[1, 2, 3], [2, 3, 1]], [2, 1, 3]),
        ([[1, 2], [3, 2]], [2, 1, 3]),
    ],
)
def test_fused_order(rankings: list[list[int]], order: list[int]) -> None:
    assert list(fuse(rankings)) == order


@pytest.mark.parametrize(("rankings", "best"), [([[1, 2]], 1.0), ([[1], [1]], 1.0), ([[1], [2]], 0.5)])
def test_scores_are_normalised(rankings: list[list[int]], best: float) -> None:
    scores = fuse(rankings)
    assert next(iter(scores.values())) == pytest.approx(best)
    assert all(0 < score <= 1 for score in scores.values())
