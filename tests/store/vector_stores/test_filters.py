"""Attribute filters, evaluated by Postgres."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from django.db import connection

from responses_app.store.vector_stores.filters import compile_filter

ATTRIBUTES = {"year": 2023, "region": "eu", "draft": False, "a'b\"%": "x"}


def compare(kind: str, key: str, value: Any) -> dict[str, Any]:
    return {"type": kind, "key": key, "value": value}


CASES = [
    (compare("eq", "year", 2023), True),
    (compare("eq", "year", 2023.0), True),
    (compare("eq", "year", "2023"), False),
    (compare("eq", "draft", False), True),
    (compare("eq", "draft", 0), False),
    (compare("eq", "absent", 1), False),
    (compare("ne", "region", "us"), True),
    (compare("ne", "region", "eu"), False),
    (compare("ne", "absent", 1), True),
    (compare("gt", "year", 2022), True),
    (compare("gt", "year", 2023), False),
    (compare("gte", "year", 2023), True),
    (compare("lt", "year", 2023.5), True),
    (compare("lte", "year", 2022), False),
    (compare("gt", "year", "2022"), False),
    (compare("gt", "draft", 1), False),
    (compare("lt", "absent", 1), False),
    (compare("gt", "region", "de"), True),
    (compare("in", "region", ["eu", "us"]), True),
    (compare("in", "region", ["us", 1]), False),
    (compare("in", "region", []), False),
    (compare("nin", "region", ["us"]), True),
    (compare("nin", "region", ["eu"]), False),
    (compare("nin", "absent", ["eu"]), True),
    (compare("nin", "region", []), True),
    (compare("eq", "a'b\"%", "x"), True),
    (compare("eq", "region'; DROP TABLE x; --", "x"), False),
    (compare("eq", "region\0", "e\0u"), True),
    ({"type": "and", "filters": [compare("eq", "region", "eu"), compare("gte", "year", 2024)]}, False),
    ({"type": "or", "filters": [compare("eq", "region", "eu"), compare("gte", "year", 2024)]}, True),
    ({"type": "and", "filters": []}, True),
    ({"type": "or", "filters": []}, False),
    (
        {"type": "or", "filters": [compare("eq", "x", 1), {"type": "and", "filters": [compare("ne", "x", 1)]}]},
        True,
    ),
]


@pytest.mark.django_db
@pytest.mark.parametrize(("filters", "matches"), CASES, ids=[orjson.dumps(case[0]).decode() for case in CASES])
def test_filter_matches(filters: dict[str, Any], matches: bool) -> None:
    condition, values = compile_filter(filters, "attributes")
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {condition} FROM (SELECT %(attributes)s::jsonb AS attributes) AS file",  # noqa: S608 - the condition has parameters alone
            {**values, "attributes": orjson.dumps(ATTRIBUTES).decode()},
        )
        assert cursor.fetchone() == (matches,)
