"""Choices of people for chat threads: titles, pins and links, which end with the last response of their thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from django.db import connection

from responses_app.models import BRANCH

# Each condition has an index.
_PRUNE_SQL: Final = """
DELETE FROM responses_app_chatthread AS choices WHERE NOT EXISTS (
  SELECT FROM responses_app_response AS response WHERE response.thread = choices.thread AND response.project = choices.project
) AND NOT EXISTS (
  SELECT FROM responses_app_response AS response WHERE response.metadata <> '{}' AND response.project = choices.project
    AND response.metadata @> jsonb_build_object(%s::text, choices.thread)
)
"""


def prune() -> Iterator[tuple[str, int]]:
    """Delete the choices for threads without a response. Yield kind and number if there are any."""
    with connection.cursor() as cursor:
        cursor.execute(_PRUNE_SQL, [BRANCH])
        if count := cursor.rowcount:
            yield "choices for chat threads", count
