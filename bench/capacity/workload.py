"""Workload of a day: rates by hour, tokens of responses, and retention."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

DAY_S = 86_400
HOUR_S = 3600
# Share of each hour in the requests of a day, for users in neighbouring time zones: the busiest hour has 1.9 times the mean.
OFFICE = (1, 1, 1, 1, 1, 2, 4, 7, 10, 12, 12, 11, 9, 11, 12, 12, 11, 9, 7, 6, 5, 4, 3, 2)
FLAT = (1,) * 24
PROFILES = {"office": OFFICE, "flat": FLAT}
# Events of a response beside its deltas: created, in_progress, and for a message 6 more up to the end.
FRAME_EVENTS = 8


@dataclass(frozen=True)
class Workload:
    """Workload: requests per day by the hours of `profile`, output tokens log-normally distributed, and the retention in days.

    `tokens_per_s` is the rate of one stream, `first_token_s` the time of the prompt, `deltas_per_event` how many tokens an event has.
    """

    requests_per_day: float
    profile: Sequence[float] = OFFICE
    median_tokens: float = 300.0
    sigma: float = 0.8
    max_tokens: int = 8000
    prompt_tokens: int = 1500
    tokens_per_s: float = 40.0
    first_token_s: float = 0.5
    deltas_per_event: float = 1.0
    keep_days: float = 90.0

    @property
    def mean_tokens(self) -> float:
        """Mean of the log-normal distribution, which `max_tokens` cuts off for fewer than one response in 10,000."""
        return self.median_tokens * math.exp(self.sigma**2 / 2)

    @property
    def mean_rate(self) -> float:
        """Requests per second, over the day."""
        return self.requests_per_day / DAY_S

    @property
    def peak_rate(self) -> float:
        """Requests per second in the busiest hour."""
        return max(self.hourly_rates)

    @cached_property
    def hourly_rates(self) -> tuple[float, ...]:
        """Requests per second in each hour."""
        per_share = self.requests_per_day / sum(self.profile) / HOUR_S
        return tuple(share * per_share for share in self.profile)

    @property
    def mean_seconds(self) -> float:
        """Mean duration of a response."""
        return self.first_token_s + self.mean_tokens / self.tokens_per_s

    @property
    def events_per_response(self) -> float:
        """Mean number of events of a response."""
        return FRAME_EVENTS + self.mean_tokens / self.deltas_per_event

    def arrivals(self, chance: random.Random) -> Iterator[tuple[float, int]]:
        """Yield the requests of a day: second of the day, and output tokens. A Poisson process with the rate of each hour."""
        for hour, rate in enumerate(self.hourly_rates):
            at = hour * HOUR_S + chance.expovariate(rate)
            while at < (hour + 1) * HOUR_S:
                yield at, self._tokens(chance)
                at += chance.expovariate(rate)

    def _tokens(self, chance: random.Random) -> int:
        tokens = chance.lognormvariate(math.log(self.median_tokens), self.sigma)
        return max(1, min(round(tokens), self.max_tokens))
