"""Outputs of all families, cut after each token: the items are a beginning of the whole output's items."""

from __future__ import annotations

import pytest

from tests.support.dialects.families.cases import cut_case
from tests.support.dialects.families.known_failures import cut_families
from tests.support.dialects.families.open_families import OpenFamilies, items_of, texts_of

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("family", cut_families("cut:items"))
def test_cut_output_is_a_beginning_of_the_items(families: OpenFamilies, family: str) -> None:
    model, case = families[family], cut_case(families[family].format)
    assert items_of(model.parse_singly(case)) == list(case.expected)
    whole = texts_of(model.parse_singly(case))
    assert {end: cut for end, cut in model.cuts.items() if not _begins(whole, cut)} == {}


@pytest.mark.parametrize("family", cut_families("cut:arguments"))
def test_arguments_of_a_cut_call_are_not_completed(families: OpenFamilies, family: str) -> None:
    model = families[family]
    calls = [item for item in texts_of(model.parse_singly(cut_case(model.format))) if item[0] == "call"]
    cuts = {end: cut[-1] for end, cut in model.cuts.items() if cut and cut[-1][:-1] in [call[:-1] for call in calls]}
    assert {end: last for end, last in cuts.items() if not any(call[-1].startswith(last[-1]) for call in calls)} == {}


def _begins(whole: list[tuple[str, ...]], cut: list[tuple[str, ...]]) -> bool:
    """Check that `cut` are the first items of `whole`, the last text perhaps shorter. A call has its whole name."""
    if not cut:
        return True
    *complete, last = cut
    if complete != whole[: len(complete)] or len(cut) > len(whole):
        return False
    match = whole[len(complete)]
    return last[:-1] == match[:-1] and (last[0] == "call" or match[-1].startswith(last[-1]))
