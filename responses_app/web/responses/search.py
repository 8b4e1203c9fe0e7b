"""Full-text search in items: any substring among the newest responses, whole words in all responses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import orjson
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.search import SearchQuery
from django.db import OperationalError, transaction
from django.db.models import BigIntegerField, BooleanField, F, Func, Value

from responses_app.models import PROJECT_TERM_PREFIX, SEARCH_VECTOR, Item
from responses_app.store.replica import read_connection

# The number of newest responses for the substring search.
RECENT_WINDOW = 3_000
# Time limit of the word search. A search for too frequent words covers only the newest responses.
INDEX_TIMEOUT_MS = 1_000
# The index has no words for the ids of this server.
NEW_ID = re.compile(r"[A-Za-z]*_[0-9a-f]{48}")
# `LATERAL` with a limit looks up items per response. With a plain join Postgres may read all items.
RECENT_SQL = """
SELECT wanted.id FROM unnest(%s::bigint[]) AS wanted(id), LATERAL (
  SELECT 1 FROM responses_app_item WHERE response_id = wanted.id AND body ILIKE %s LIMIT 1) AS found
"""


class PrefixQuery(SearchQuery):
    """Query for all words of a text, the last word as a prefix; null for a text without words."""

    template = "(nullif(%(function)s(%(expressions)s)::text, '') || ':*')::tsquery"


class InProjects(SearchQuery):
    """Query for the index words of projects."""

    template = "(%(expressions)s)::tsquery"

    def __init__(self, projects: Sequence[str]) -> None:
        # In a tsquery a quoted word has its quotes and backslashes doubled.
        words = [(PROJECT_TERM_PREFIX + name).replace("\\", "\\\\").replace("'", "''") for name in projects]
        super().__init__(" | ".join(f"'{word}'" for word in words))


class HasKey(Func):
    """Condition: the primary key is one of `keys`, an array. As the values of `IN`, thousands of keys take 30 ms for each query."""

    template = "%(expressions)s)"
    arg_joiner = " = ANY("
    output_field = BooleanField()

    def __init__(self, keys: Iterable[int]) -> None:
        super().__init__(F("pk"), Value(list(keys), output_field=ArrayField(BigIntegerField())))


def search_recent(text: str, keys: Sequence[int]) -> list[int]:
    """Return the keys of the responses with `text` in the JSON of an item."""
    pattern = "%" + re.sub(r"([\\%_])", r"\\\1", _json_escape(text)) + "%"
    with read_connection().cursor() as cursor:
        cursor.execute(RECENT_SQL, [list(keys), pattern])
        return [row[0] for row in cursor.fetchall()]


def search_indexed(text: str, projects: Sequence[str] | None = None) -> list[int] | None:
    """Return the keys of the responses with all words and the text in an item, or with an item of this id.

    None after `INDEX_TIMEOUT_MS`. Only items of `projects` are read, None for all projects.
    """
    if projects is not None and not projects:
        return []
    query: Any = PrefixQuery(NEW_ID.sub(" ", text), config="simple")
    if projects is not None:
        query = query & InProjects(projects)
    matching = Item.objects.annotate(words=SEARCH_VECTOR).filter(words=query, body__icontains=_json_escape(text))
    named = Item.objects.filter(uid=text, **({} if projects is None else {"project__in": projects}))
    connection = read_connection()
    try:
        with transaction.atomic(connection.alias), connection.cursor() as cursor:
            # A sequential scan would read and decompress every item.
            cursor.execute(f"SET LOCAL enable_seqscan TO off; SET LOCAL statement_timeout TO {INDEX_TIMEOUT_MS}")
            rows = [*matching.order_by().values_list("response_id", flat=True), *named.values_list("response_id", flat=True)]
            keys = {key for key in rows if key is not None}
            cursor.execute("SET LOCAL enable_seqscan TO DEFAULT; SET LOCAL statement_timeout TO DEFAULT")
    except OperationalError:
        return None
    return list(keys)


def _json_escape(text: str) -> str:
    """Escape `text` as inside a JSON string."""
    return orjson.dumps(text)[1:-1].decode()
