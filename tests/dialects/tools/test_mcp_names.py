"""Names of MCP tools as functions."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from responses_app.dialects.tools.mcp_names import function_name

LABELS = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,63}", fullmatch=True)


def test_plain_names_stay() -> None:
    assert function_name("docs", "search_pages") == "docs__search_pages"


@given(LABELS, st.text(max_size=100))
def test_names_are_safe(label: str, name: str) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", function_name(label, name))


@given(st.tuples(LABELS, st.text(max_size=80)), st.tuples(LABELS, st.text(max_size=80)))
def test_two_tools_never_share_a_name(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (function_name(*one) == function_name(*other)) == (one == other)
