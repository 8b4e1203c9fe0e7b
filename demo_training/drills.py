"""Samples that teach one thing alone, to copy or to add, and batches of samples of like length."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from random import Random

import torch
from torch import Tensor

from demo_training.chat import IGNORE, Sample
from demo_training.exchanges import sums

BATCH, LONGEST = 2600, 2000


def echo_sample(r: Random, pool: list[int]) -> Sample:
    """Random tokens twice: nothing teaches copying faster."""
    ids = [r.choice(pool) for _ in range(r.randint(8, 50))]
    gap = [r.choice(pool) for _ in range(r.randint(1, 10))]
    whole = ids + gap + ids
    labels = whole[1:]
    known = len(ids) + len(gap)
    return Sample(whole[:-1], [IGNORE] * known + labels[known:])


def maze_sample(r: Random, pool: list[int]) -> Sample:
    """The same with a handful of tokens: what comes next depends on more than the last one."""
    few = r.sample(pool, r.randint(3, 9))
    before = [r.choice(pool) for _ in range(r.randint(0, 60))]
    ids = [r.choice(few) for _ in range(r.randint(12, 40))]
    gap = [r.choice(pool) for _ in range(r.randint(1, 10))]
    whole = before + ids + gap + ids
    known = len(whole) - len(ids) + 1
    return Sample(whole[:-1], [IGNORE] * known + whole[known + 1 :])


def drill_sample(r: Random, encode: Callable[[str], list[int]]) -> Sample:
    """Single steps of sums; only what follows is taught."""
    whole: list[int] = []
    labels: list[int] = []
    for given, taught in sums.drill(r):
        known, new = encode(given), encode(taught)
        whole += known + new
        labels += [IGNORE] * len(known) + new
    return Sample(whole[:-1], labels[1:])


def batches(samples: Iterator[Sample]) -> Iterator[tuple[Tensor, Tensor]]:
    """Samples of like length together, so that little is padding."""
    r = Random(0)
    while True:
        pool = sorted((s for s in itertools.islice(samples, 500) if len(s.ids) <= LONGEST), key=lambda s: len(s.ids))
        groups: list[list[Sample]] = [[]]
        for s in pool:
            if (len(groups[-1]) + 1) * len(s.ids) > BATCH:
                groups.append([])
            groups[-1].append(s)
        r.shuffle(groups)
        yield from (padded(g) for g in groups if g)


def padded(group: list[Sample]) -> tuple[Tensor, Tensor]:
    longest = max(len(s.ids) for s in group)
    ids = torch.zeros(len(group), longest, dtype=torch.long)
    labels = torch.full((len(group), longest), IGNORE, dtype=torch.long)
    for i, s in enumerate(group):
        ids[i, : len(s.ids)] = torch.tensor(s.ids)
        labels[i, : len(s.labels)] = torch.tensor(s.labels)
    return ids, labels
