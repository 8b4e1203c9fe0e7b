"""Commands on a database without tables, run as the `manage.py` of `startproject` does: each ends with a sentence."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.db import connection


@pytest.mark.django_db
@pytest.mark.parametrize(
    "words",
    [
        ("createkey", "name"),
        ("signin",),
        ("projectlimits", "name"),
        ("prune",),
        ("erase", "--project=name", "--yes"),
        ("export", "--safety-identifier=name", "new.jsonl"),
    ],
    ids=lambda words: words[0],
)
def test_a_command_before_migrate_says_what_to_run(words: tuple[str, ...]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL search_path TO pg_catalog")
    with pytest.raises(CommandError, match=r"the tables are missing .*: run the command migrate"):
        call_command(*words)
