"""The rows of the response list: figures of a response, and the beginning of what was asked and answered."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import orjson
from django.db import connection

from responses_app.models import Direction, Response
from responses_app.web.render.sanitize import visible

# The first text of an item, or what a tool was given, of which no more is read than its beginning.
SAID = re.compile(r'"(?:text|arguments|input|output)":"((?:[^"\\]|\\.){1,160})')
# The last item of each direction: a question stands behind its context, an answer behind its reasoning. Postgres would need half a
# millisecond for the expression above, which takes microseconds here.
SQL = "SELECT response_id, direction, left(body, 6000) FROM responses_app_item WHERE id = ANY(%s)"
EDGES = "SELECT response_id, direction, max(id) FROM responses_app_item WHERE response_id = ANY(%s) GROUP BY 1, 2"


# Of a shorter time no rate is shown.
SHORTEST_S = 0.05


@dataclass(frozen=True, slots=True)
class ResponseStats:
    """What the clock and the counters say about a response."""

    row: Response

    @property
    def total_s(self) -> float | None:
        """Seconds from its creation to its end."""
        ended = self.row.ended_at
        return None if ended is None else max((ended - self.row.created_at).total_seconds(), 0.0)

    @property
    def first_s(self) -> float | None:
        """Seconds to the model's first words."""
        return None if self.row.time_to_first_token_ms is None else self.row.time_to_first_token_ms / 1000

    @property
    def rate(self) -> float | None:
        """Tokens a second, from the first words on; None if they came in so short a time that it would show the clock."""
        total, first, tokens = self.total_s, self.first_s, self.row.output_tokens
        if total is None or first is None or not tokens or total - first < SHORTEST_S:
            return None
        return tokens / (total - first)


@dataclass(frozen=True, slots=True)
class ResponseRow:
    """One line of the list."""

    response: Response
    figures: ResponseStats
    asked: str
    answered: str


def rows(found: Sequence[Response]) -> list[ResponseRow]:
    """The lines of these responses, in two queries."""
    said = _said([row.pk for row in found])
    return [
        ResponseRow(row, ResponseStats(row), said.get((row.pk, Direction.INPUT), ""), said.get((row.pk, Direction.OUTPUT), ""))
        for row in found
    ]


def _said(keys: Sequence[int]) -> dict[tuple[int, str], str]:
    with connection.cursor() as cursor:
        cursor.execute(EDGES, [list(keys)])
        last = [pk for _, _, pk in cursor.fetchall()]
        cursor.execute(SQL, [last])
        return _plain(cursor.fetchall())


def _plain(found: Iterable[tuple[int, str, str]]) -> dict[tuple[int, str], str]:
    plain = {}
    for pk, direction, body in found:
        text = SAID.search(body)
        if text is not None:
            plain[pk, direction] = _unescaped(text[1])
    return plain


def _unescaped(text: str) -> str:
    """What stands between the quotes of JSON, perhaps cut in the middle of an escape."""
    try:
        said: str = orjson.loads(f'"{text}"')
    except orjson.JSONDecodeError:
        said = text
    return visible(" ".join(said.split()))
