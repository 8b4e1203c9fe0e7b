"""Cells of CSV files."""

from __future__ import annotations

import pytest

from responses_app.utils.csv_cells import csv_cell


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@sum", "\t=1", "\r=1", "\n=1", "＝1+1", "＋1", "－1", "＠sum"])
def test_formula_becomes_a_text(text: str) -> None:
    assert csv_cell(text) == f"'{text}"


def test_other_values_stay() -> None:
    assert [csv_cell(value) for value in ("", "ada", "a=1", "日本", None, -1, 0.5)] == ["", "ada", "a=1", "日本", "", -1, 0.5]
