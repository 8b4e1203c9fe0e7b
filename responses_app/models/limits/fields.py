"""Limits that a key and a project may have, as columns of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from typing import Final

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from responses_app.models.limits.numbers import BigLimitField, LimitField

MAX_TOKENS: Final = 10**15
MAX_CALLS: Final = 10**9
MAX_SPEND: Final = Decimal("9999999.99")
MAX_DAYS: Final = 36_500
MAX_MODEL_NAME: Final = 200
# Money is counted in billionths of the currency unit: a price of 0.001 for a million tokens is one of these for a token.
NANO: Final = 10**9


class Amount(StrEnum):
    """Kind of use that a limit counts."""

    TOKENS = "tokens"
    CALLS = "tool calls"
    SPEND = "spend"


@dataclass(frozen=True, slots=True)
class CountedLimit:
    """Limit on an amount in a window: a minute, a day or a month of UTC. `scope` is `key` or `project`, `counter` the name of the row.

    `most` is in tokens, in calls, or in billionths of the currency unit.
    """

    counter: str
    scope: str
    amount: Amount
    unit: str
    most: int


class UsageLimits(models.Model):
    """Limits on tokens, spend and tool calls, the retention of responses, and allowed models and tools. Null or empty is no limit."""

    tokens_per_minute = BigLimitField(
        null=True,
        blank=True,
        validators=(MinValueValidator(1), MaxValueValidator(MAX_TOKENS)),
        help_text="Input and output tokens. Leave blank for no limit.",
    )
    tokens_per_day = BigLimitField(
        null=True,
        blank=True,
        validators=(MinValueValidator(1), MaxValueValidator(MAX_TOKENS)),
        help_text="Input and output tokens in a day of UTC. Leave blank for no limit.",
    )
    spend_per_month = models.DecimalField(
        null=True,
        blank=True,
        max_digits=9,
        decimal_places=2,
        validators=(MinValueValidator(Decimal("0.01")), MaxValueValidator(MAX_SPEND)),
        help_text="By the prices in RESPONSES_PRICES, in a month of UTC. Leave blank for no limit.",
    )
    tool_calls_per_day = LimitField(
        null=True,
        blank=True,
        validators=(MinValueValidator(1), MaxValueValidator(MAX_CALLS)),
        help_text="Calls of tools that this server runs, in a day of UTC. Leave blank for no limit.",
    )
    retention_days = LimitField(
        null=True,
        blank=True,
        validators=(MinValueValidator(1), MaxValueValidator(MAX_DAYS)),
        help_text="Days after which responses are deleted. The shortest time counts. Leave blank for the time of the server.",
    )
    allowed_models = ArrayField(
        models.CharField(max_length=MAX_MODEL_NAME),
        default=list,
        db_default=[],
        blank=True,
        help_text="Leave blank to allow all models.",
    )
    allowed_tools = ArrayField(
        models.CharField(max_length=200),
        default=list,
        db_default=[],
        blank=True,
        help_text="Tools that this server runs: code_interpreter, file_search, web_search, mcp:LABEL for a server of the operator, "
        "mcp for servers that a request names by URL, or none. Leave blank to allow all.",
    )

    class Meta:
        abstract = True

    @property
    def limited_name(self) -> tuple[str, str]:
        """The scope (`key` or `project`) and the name of this row in the names of the counters."""
        raise NotImplementedError

    @cached_property
    def counted_limits(self) -> Sequence[CountedLimit]:
        """The limits that are counted in the database."""
        scope, name = self.limited_name
        spend = None if self.spend_per_month is None else int(self.spend_per_month * NANO)
        limits = (
            (Amount.TOKENS, "minute", self.tokens_per_minute),
            (Amount.TOKENS, "day", self.tokens_per_day),
            (Amount.SPEND, "month", spend),
            (Amount.CALLS, "day", self.tool_calls_per_day),
        )
        return [
            CountedLimit(f"{amount} per {unit} of {scope} {name}", scope, amount, unit, most)
            for amount, unit, most in limits
            if most is not None
        ]
