"""Reciprocal rank fusion: joins rankings of the same chunks, with scores from 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence

# Constant of the paper of Cormack, Clarke and Büttcher (SIGIR 2009).
K = 60


def fuse(rankings: Sequence[Sequence[int]], weights: Sequence[float] | None = None) -> dict[int, float]:
    """Return the score of each id in `rankings`, best first. The score is 1 for an id that leads every ranking.

    `weights` are the weights of the rankings, by default the same for all.
    """
    scores: dict[int, float] = {}
    weights = weights or [1.0] * len(rankings)
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, one in enumerate(ranking, start=1):
            scores[one] = scores.get(one, 0.0) + weight / (K + rank)
    best = sum(weights) / (K + 1) or 1.0
    ordered = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
    return {one: min(score / best, 1.0) for one, score in ordered}
