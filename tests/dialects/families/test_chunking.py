"""Outputs of all families in other chunks and in other tokens: the result does not depend on either."""

from __future__ import annotations

from zlib import crc32

import pytest

from tests.support.dialects.families.cases import OutputCase
from tests.support.dialects.families.known_failures import chunked_cases
from tests.support.dialects.families.open_families import OpenFamilies, items_of

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize(("family", "case"), chunked_cases())
def test_whole_output_in_a_chunk_gives_the_same_deltas(families: OpenFamilies, family: str, case: OutputCase) -> None:
    model = families[family]
    assert model.parse(case, model.tokens(case)) == model.parse_singly(case)


@pytest.mark.parametrize(("family", "case"), chunked_cases())
def test_bursts_of_tokens_give_the_same_deltas(families: OpenFamilies, family: str, case: OutputCase) -> None:
    model = families[family]
    tokens = model.tokens(case)
    sizes = [1 + crc32(f"{case.name} {at}".encode()) % 9 for at in range(len(tokens))]
    assert model.parse(case, tokens, sizes) == model.parse_singly(case)


@pytest.mark.parametrize(("family", "case"), chunked_cases("letters"))
def test_other_token_boundaries_give_the_same_items(families: OpenFamilies, family: str, case: OutputCase) -> None:
    model = families[family]
    letters = model.letters(case)
    assert items_of(model.parse(case, letters, [1] * len(letters))) == items_of(model.parse_singly(case))
