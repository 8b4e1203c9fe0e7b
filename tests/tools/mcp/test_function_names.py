"""Names of MCP tools as functions."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_app.tools.mcp.function_names import function_name

LABELS = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,63}", fullmatch=True)


def test_plain_names_stay() -> None:
    assert function_name("docs", "search_pages") == "docs__search_pages"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(("a_", "b"), ("a", "_b"), id="underscores between"),
        pytest.param(("a__b", "c"), ("a", "b__c"), id="separator in the label"),
        pytest.param(("a", "b.c"), ("a", "b_c"), id="changed character"),
        pytest.param(("a", "x" * 90), ("a", "x" * 91), id="cut"),
    ],
)
def test_names_that_look_alike_differ(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert function_name(*one) != function_name(*other)


@given(LABELS, st.text(max_size=100))
def test_names_are_safe(label: str, name: str) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", function_name(label, name))


@given(st.tuples(LABELS, st.text(max_size=80)), st.tuples(LABELS, st.text(max_size=80)))
def test_two_tools_never_share_a_name(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (function_name(*one) == function_name(*other)) == (one == other)
