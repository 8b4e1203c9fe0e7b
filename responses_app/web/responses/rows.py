"""Rows of the response list: statistics of a response, and excerpts of input and output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from responses_app.models import Direction, Response, Status
from responses_app.store.replica import read_connection
from responses_app.web.render.sanitize import visible
from responses_app.web.responses.failures import last_snapshots, message_of, reason_of

# The first text, arguments, input or output in the JSON of an item, at most 160 characters.
EXCERPT = re.compile(r'"(?:text|arguments|input|output)":"((?:[^"\\]|\\.){1,160})')
# Link of Markdown, whose address may be cut.
LINK = re.compile(r"!?\[([^\[\]]+)\]\([^()\s]*(?:\)|$)")
# Excerpts come from the last item of each direction: the question follows its context, and the answer follows its reasoning.
# The regular expression runs here because it takes microseconds in Python and half a millisecond in Postgres.
# Where a picture fills the beginning of a body, the end is read too: the text often stands behind the pictures.
BODIES_SQL = """
SELECT response_id, direction,
    left(body, 6000) || CASE WHEN left(body, 6000) LIKE '%%"image_url":"data:%%' THEN right(body, 6000) ELSE '' END
FROM responses_app_item WHERE id = ANY(%s)
"""
LAST_ITEMS_SQL = "SELECT response_id, direction, max(id) FROM responses_app_item WHERE response_id = ANY(%s) GROUP BY 1, 2"
# The newest message of the user in the input or in the context. The beginning of a body has the role.
QUESTION_SQL = """
SELECT left(body, 6000) || CASE WHEN left(body, 6000) LIKE '%%"image_url":"data:%%' THEN right(body, 6000) ELSE '' END
FROM responses_app_item
WHERE (response_id = %s AND direction = %s OR id = ANY(%s)) AND left(body, 1000) LIKE '%%"role":"user"%%'
ORDER BY id DESC LIMIT 1
"""
# Newest items of the context that are searched for the question.
MAX_QUESTION_ITEMS = 500
# More than the column of a wide screen shows.
MAX_ROW_CHARS = 90
# More than any message of this server has.
MAX_PROBLEM_CHARS = 300
# No rate is shown for a shorter generation time.
MIN_RATE_TIME_S = 0.05


@dataclass(frozen=True, slots=True)
class ResponseStats:
    """Duration, time to first token and tokens per second of a response."""

    row: Response

    @property
    def total_s(self) -> float | None:
        """Return the seconds from creation to end, None while the response runs."""
        ended = self.row.ended_at
        return None if ended is None else max((ended - self.row.created_at).total_seconds(), 0.0)

    @property
    def first_s(self) -> float | None:
        """Return the seconds from creation to the first token."""
        return None if self.row.time_to_first_token_ms is None else self.row.time_to_first_token_ms / 1000

    @property
    def rate(self) -> float | None:
        """Return the output tokens per second of generation, None if unknown or for a time below `MIN_RATE_TIME_S`."""
        seconds, tokens = self._generation_s, self.row.output_tokens
        return None if seconds is None or not tokens or seconds < MIN_RATE_TIME_S else tokens / seconds

    @property
    def _generation_s(self) -> float | None:
        """Seconds of generation. For a response without tools that another process continued: the time after the first token."""
        if self.row.generation_ms is not None:
            return self.row.generation_ms / 1000
        total, first = self.total_s, self.first_s
        return None if total is None or first is None or self.row.tools else total - first


@dataclass(frozen=True, slots=True)
class ResponseRow:
    """Row of the list with excerpts of input and output, the code of the end, and the error message of a failed response."""

    response: Response
    stats: ResponseStats
    asked: str
    answered: str
    code: str = ""
    problem: str = ""


def rows(responses: Sequence[Response]) -> list[ResponseRow]:
    """Build the rows of the responses, with two queries, and one more if a response has failed or is incomplete."""
    if not responses:
        return []
    texts = excerpts([row.pk for row in responses])
    asked, answered = ([texts.get((row.pk, side), "") for row in responses] for side in Direction.values)
    ends = last_snapshots([row.pk for row in responses if row.status in (Status.FAILED, Status.INCOMPLETE)])
    return [
        ResponseRow(
            row, ResponseStats(row), _shorten(question), _shorten(LINK.sub(r"\1", answer)), *_end(row, ends.get(row.pk, {}))
        )
        for row, question, answer in zip(responses, asked, answered, strict=True)
    ]


def _end(row: Response, snapshot: Mapping[str, Any]) -> tuple[str, str]:
    """Return the code of the error or the reason, and the error message."""
    return visible(row.error_code or reason_of(snapshot)), visible(message_of(snapshot)[:MAX_PROBLEM_CHARS])


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_ROW_CHARS else f"{text[:MAX_ROW_CHARS]}…"


def excerpts(keys: Sequence[int]) -> dict[tuple[int, str], str]:
    """Return the beginning of the last input and of the last output of responses, by primary key and direction, in two queries."""
    with read_connection().cursor() as cursor:
        cursor.execute(LAST_ITEMS_SQL, [list(keys)])
        last = [pk for _, _, pk in cursor.fetchall()]
        cursor.execute(BODIES_SQL, [last])
        return _by_direction(cursor.fetchall())


def question_of(row: Response) -> str:
    """Return the beginning of the user's newest message, or of the last input without one: the results of tools ask nothing."""
    with read_connection().cursor() as cursor:
        cursor.execute(QUESTION_SQL, [row.pk, Direction.INPUT, row.history[-MAX_QUESTION_ITEMS:]])
        match = next((EXCERPT.search(body) for (body,) in cursor.fetchall()), None)
    return _unescape(match[1]) if match else excerpts([row.pk]).get((row.pk, Direction.INPUT), "")


def _by_direction(bodies: Iterable[tuple[int, str, str]]) -> dict[tuple[int, str], str]:
    excerpts = {}
    for pk, direction, body in bodies:
        match = EXCERPT.search(body)
        if match is not None:
            excerpts[pk, direction] = _unescape(match[1])
        elif '"type":"mcp_approval_response"' in body:
            excerpts[pk, direction] = "Approved" if '"approve":true' in body else "Denied"
    return excerpts


def _unescape(text: str) -> str:
    """Decode the inside of a JSON string. Return `text` if a truncated escape does not parse."""
    try:
        decoded: str = orjson.loads(f'"{text}"')
    except orjson.JSONDecodeError:
        decoded = text
    return visible(" ".join(decoded.split()))
