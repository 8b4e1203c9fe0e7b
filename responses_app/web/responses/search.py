"""Finds a text in what was told and said: any part of a text among the newest responses, and by its words in all of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import orjson
from django.contrib.postgres.search import SearchQuery
from django.db import OperationalError, connection, transaction

from responses_app.models import PROJECT_TERM_PREFIX, SEARCH_VECTOR, Item

# Among so many every letter is looked at.
NEAR = 3_000
# How long a search by words may take. One that is not rare enough for that is said to have looked among the newest alone.
LIMIT_MS = 1_000
# Response by response: a plain join would be free to read all items instead. `LATERAL` with a limit is not.
SAYING = """
SELECT wanted.id FROM unnest(%s::bigint[]) AS wanted(id), LATERAL (
  SELECT 1 FROM responses_app_item WHERE response_id = wanted.id AND body ILIKE %s LIMIT 1) AS found
"""


class PrefixQuery(SearchQuery):
    """All these words, of which the last one may be the beginning of one; null if there are none."""

    template = "(nullif(%(function)s(%(expressions)s)::text, '') || ':*')::tsquery"


class InProjects(SearchQuery):
    """The word of one of these projects, or of another one of them."""

    template = "(%(expressions)s)::tsquery"

    def __init__(self, projects: Sequence[str]) -> None:
        # In a tsquery a quoted word has its quotes and backslashes doubled.
        words = [(PROJECT_TERM_PREFIX + name).replace("\\", "\\\\").replace("'", "''") for name in projects]
        super().__init__(" | ".join(f"'{word}'" for word in words))


def search_recent(text: str, keys: Sequence[int]) -> list[int]:
    """Those of the responses in whose items the text stands, as JSON writes it."""
    pattern = "%" + re.sub(r"([\\%_])", r"\\\1", _written(text)) + "%"
    with connection.cursor() as cursor:
        cursor.execute(SAYING, [list(keys), pattern])
        return [row[0] for row in cursor.fetchall()]


def search_indexed(text: str, projects: Sequence[str] | None = None) -> list[int] | None:
    """The responses in whose items the words stand, and the text too; None if they are too many to be read in time.

    Of other projects than these nothing is read but the index. None are all projects.
    """
    if projects is not None and not projects:
        return []
    wanted: Any = PrefixQuery(text, config="simple")
    if projects is not None:
        wanted = wanted & InProjects(projects)
    said = Item.objects.annotate(words=SEARCH_VECTOR).filter(words=wanted, body__icontains=_written(text))
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            # Anything but the index would read, and take apart, every item.
            cursor.execute(f"SET LOCAL enable_seqscan TO off; SET LOCAL statement_timeout TO {LIMIT_MS}")
            found = {key for key in said.order_by().values_list("response_id", flat=True) if key is not None}
            cursor.execute("SET LOCAL enable_seqscan TO DEFAULT; SET LOCAL statement_timeout TO DEFAULT")
    except OperationalError:
        return None
    return list(found)


def _written(text: str) -> str:
    """As it stands in the JSON of an item."""
    return orjson.dumps(text)[1:-1].decode()
