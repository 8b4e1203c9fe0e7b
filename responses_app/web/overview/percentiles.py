"""Percentiles of counted values: a histogram with steps of 2 %, which can be merged (as in DDSketch)."""

from __future__ import annotations

import math
import sys
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate

# Codes for a factor of e: a code is `round(STEPS * ln(value))`, so a decoded value differs by 1 % at most.
STEPS = 50
PERCENTS = (50, 95, 99)


class Distribution:
    """Counted values, each as its code."""

    def __init__(self, counts: Iterable[Counter[int]] = ()) -> None:
        self._counts: Counter[int] = Counter()
        for one in counts:
            self._counts.update(one)

    @classmethod
    def of_codes(cls, parts: Iterable[bytes]) -> Distribution:
        """Count codes in the format of Postgres' `int2send`."""
        codes = array("h", b"".join(parts))
        if sys.byteorder == "little":
            codes.byteswap()
        return cls([Counter(codes)])

    @classmethod
    def merged(cls, distributions: Iterable[Distribution]) -> Distribution:
        """Return a distribution with the values of all `distributions`."""
        return cls([one._counts for one in distributions])

    @cached_property
    def percentiles(self) -> Sequence[float | None]:
        """Return for each of `PERCENTS` the smallest value that so many values do not exceed (nearest rank), None without values."""
        if not self._counts:
            return [None] * len(PERCENTS)
        codes = sorted(self._counts)
        # Number of values up to each code.
        passed = list(accumulate(map(self._counts.__getitem__, codes)))
        ranks = [math.ceil(passed[-1] * percent / 100) for percent in PERCENTS]
        return [math.exp(codes[bisect_left(passed, rank)] / STEPS) for rank in ranks]
