"""Outputs of all families, opened without naming a parser, fed token by token."""

from __future__ import annotations

import pytest

from tests.support.dialects.families.cases import OutputCase
from tests.support.dialects.families.known_failures import family_cases, unused_patterns
from tests.support.dialects.families.open_families import OpenFamilies, items_of

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize(("family", "case"), family_cases())
def test_output_becomes_the_expected_items(families: OpenFamilies, family: str, case: OutputCase) -> None:
    model = families[family]
    assert items_of(model.parse_singly(case)) == list(case.expected)


def test_every_known_failure_names_a_case() -> None:
    assert unused_patterns() == []
