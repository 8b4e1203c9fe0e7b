"""Usage of responses that have ended: what the limits count, and the rows from which usage is reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db import connection

from responses_app.models import UsageRecord
from responses_app.store.limits.counters import used_amounts
from responses_app.store.limits.prices import cost

# Types of the calls that limits of tool calls count.
SERVER_CALLS: Final = frozenset(
    {"mcp_call", "code_interpreter_call", "web_search_call", "file_search_call", "image_generation_call"}
)
# Rows of single responses become rows of a minute after a minute, and rows of an hour after this time.
KEEP_MINUTES: Final = timedelta(days=2)
BATCH: Final = 20_000
MERGE_SQL: Final = """
WITH merged AS (
  DELETE FROM responses_app_usagerecord WHERE id IN (
    SELECT id FROM responses_app_usagerecord WHERE seconds < %(seconds)s AND start < %(before)s
    ORDER BY start LIMIT %(batch)s FOR UPDATE SKIP LOCKED
  ) RETURNING *
), inserted AS (
  INSERT INTO responses_app_usagerecord
    (start, seconds, project, key, "user", model, requests, input_tokens, cached_tokens, output_tokens, tool_calls, cost)
  SELECT date_trunc(%(unit)s, start, 'UTC'), %(seconds)s, project, key, "user", model,
    sum(requests), sum(input_tokens), sum(cached_tokens), sum(output_tokens), sum(tool_calls), sum(cost)
  FROM merged GROUP BY 1, project, key, "user", model
)
SELECT count(*) FROM merged
"""


@dataclass(frozen=True, slots=True)
class Spent:
    """Usage of a response. `cost` is in billionths of the currency unit, and `cached_tokens` are part of `input_tokens`."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    cost: int = 0

    @property
    def amounts(self) -> Mapping[str, int]:
        """The amounts that limits count, by name."""
        return used_amounts(self.input_tokens + self.output_tokens, self.calls, self.cost)


def spent(model: str, usage: Mapping[str, Any] | None, items: Sequence[Mapping[str, Any]]) -> Spent:
    """Return what a response of the served `model` has used, by its usage object and its output `items`."""
    calls = sum(1 for item in items if item["type"] in SERVER_CALLS)
    if usage is None:
        return Spent(calls=calls)
    prompt, cached, output = usage["input_tokens"], usage["input_tokens_details"]["cached_tokens"], usage["output_tokens"]
    return Spent(prompt, cached, output, calls, cost(model, prompt, cached, output))


def usage_row(project: str, key: int | None, user: int | None, model: str, total: Spent) -> UsageRecord:
    """Return the row of a request without a log, which ends now."""
    return UsageRecord(
        start=datetime.now(UTC),
        seconds=0,
        project=project,
        key=key,
        user=user,
        model=model,
        requests=1,
        input_tokens=total.input_tokens,
        cached_tokens=total.cached_tokens,
        output_tokens=total.output_tokens,
        tool_calls=total.calls,
        cost=total.cost,
    )


def merge(now: datetime) -> Iterator[int]:
    """Merge rows of usage that are old enough. Yield the number of rows of each batch."""
    minute = now.astimezone(UTC).replace(second=0, microsecond=0) - timedelta(minutes=1)
    for seconds, unit, before in ((60, "minute", minute), (3600, "hour", minute.replace(minute=0) - KEEP_MINUTES)):
        count = BATCH
        while count == BATCH:
            with connection.cursor() as cursor:
                cursor.execute(MERGE_SQL, {"seconds": seconds, "unit": unit, "before": before, "batch": BATCH})
                (count,) = cursor.fetchone()
            yield count
