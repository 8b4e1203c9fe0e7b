"""Constraints of all families: required calls in the form that the chat template of the family writes."""

from __future__ import annotations

import pytest

from tests.support.dialects.families.cases import TOOLS, cases
from tests.support.dialects.families.formats.registry import FAMILIES
from tests.support.dialects.families.open_families import OpenFamilies
from tests.support.dialects.parser_driver import turn

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

CASES = [
    pytest.param(family.name, case.output, id=f"{family.name}/{case.name}")
    for family in FAMILIES.values()
    for case in cases(family)
    if not case.is_quiet and {item[0] for item in case.expected} <= {"reasoning", "call"}
]


@pytest.mark.parametrize(("family", "output"), CASES)
def test_required_call_may_be_written_as_in_the_chat_template(families: OpenFamilies, family: str, output: str) -> None:
    # Here, as xgrammar imports torch, which takes seconds.
    import xgrammar
    from xgrammar.testing import _is_grammar_accept_string

    constraint = families[family].dialect.constrain(turn(tools=TOOLS, tool_choice="required"))
    assert constraint is not None
    assert _is_grammar_accept_string(xgrammar.Grammar.from_structural_tag(constraint.value), output)
