"""Sections of the docs, plots, profiles and tables that benchmarks write."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.compare.measurement import Sample
from bench.compare.plot import axis_top, draw
from bench.compare.report import NAMES, visible_ms
from bench.support.docs import MEASURE, MissingSection, conditions, replace_section, require_section, write_section
from bench.support.load import Load
from bench.support.markdown import format_spread, markdown_table
from bench.support.profiling import summarize
from bench.support.quantiles import Spread
from bench.support.stream_client import StreamResult
from bench.tape.measurement import MeasuredRound
from bench.tape.measurement import summarize as summarize_rounds
from bench.tape.report import describe, describe_times, rates_table, times_table

PAGE = "before\n<!-- tape: begin -->\nold\n<!-- tape: end -->\nafter\n"
NEW = "before\n<!-- tape: begin -->\n\nnew\n\n<!-- tape: end -->\nafter\n"


def test_section_is_replaced_again_and_again(tmp_path: Path) -> None:
    page = tmp_path / "page"
    page.write_text(PAGE)
    for _ in range(2):
        write_section("tape", ["new"], page)
        assert page.read_text() == NEW


def test_missing_section_is_an_error() -> None:
    with pytest.raises(MissingSection):
        replace_section(PAGE, "compare", [])


@pytest.mark.parametrize("name", ["compare random-64", "compare demo-chat", "tape", "tape with a rate"])
def test_page_of_benchmarks_has_the_section(name: str) -> None:
    require_section(name, MEASURE)


def test_conditions_leave_out_where_results_go() -> None:
    arguments = ["--rate", "10", "--json", "/srv/a.json", "--write-docs", "--port", "1", "--rounds", "1"]
    text = conditions(1, 0.04, arguments, date(2026, 11, 3))
    assert text.startswith("Measured on 3 November 2026 on ")
    assert text.endswith(" --rate 10 --rounds 1`):")
    assert "at a load of 0.0 before the start; medians of 1 round" in text


def test_table_and_spread() -> None:
    assert markdown_table(["a", "b"], [["1", format_spread(Spread(2.6, 1, 4444))]]) == [
        "| a | b |",
        "|---|---|",
        "| 1 | 3 (1 to 4,444) |",
    ]
    assert format_spread(Spread(2.1, 2.0, 2.2)) == "2"


def test_answers_without_text_have_a_dash() -> None:
    assert visible_ms(float("nan"), float("nan")) == "–"
    assert visible_ms(104.4, 149.6) == "104 ms, 150 ms"


@pytest.mark.parametrize(("highest", "top"), [(0, 1), (1, 1), (7, 10), (1100, 1500), (4238, 5000), (5001, 10000)])
def test_axis_ends_at_a_round_number(highest: float, top: float) -> None:
    assert axis_top(highest) == top


def test_plot_has_a_bar_for_each_kind_and_level() -> None:
    samples = [
        Sample(kind, streams, 1, rate, 0, 0, 0, 0, 0, 0, 0, {}) for kind in NAMES for streams in (1, 64) for rate in (100, 300)
    ]
    root = ElementTree.fromstring(draw(samples, "a < b"))  # noqa: S314 (made here)
    space = "{http://www.w3.org/2000/svg}"
    assert root.findtext(f"{space}title") == "a < b"
    bars = [bar for bar in root.iter(f"{space}rect") if bar.get("y") not in (None, "32")]
    assert len(bars) == 2 * len(NAMES)


def test_profile_counts_a_function_once_per_sample() -> None:
    lines = ["main (a.py:1);work (a.py:2);work (a.py:3) 30", "main (a.py:1) 10"]
    assert summarize(lines) == [
        "by themselves:",
        " 75.0 % work (a.py)",
        " 25.0 % main (a.py)",
        "",
        "with their callees:",
        "100.0 % main (a.py)",
        " 75.0 % work (a.py)",
        "",
    ]


def test_tables_of_the_recording() -> None:
    stream = StreamResult(0.0, 0.1, 0.2, 2.0, 100, 90, 90, "completed", [0.5, 1.0, 1.6])
    rounds = [
        MeasuredRound(Load([stream], seconds, 0.001, [0.0, 0.003]), {"web": 0.01, "client": 0.001}) for seconds in (1, 2, 4)
    ]
    measured = summarize_rounds(1, True, rounds)
    assert rates_table([measured])[2] == "| 1 | stored | 50 (25 to 100) | 45 | 100 | client 10, web 100 |"
    assert (
        times_table([measured])[2] == "| 1 | stored | 600 ms, 600 ms | 200 ms, 200 ms | 500 ms, 500 ms | 100 ms | 3 ms | 100 |"
    )
    assert "50 events/s" in describe(measured.figures)
    assert "first event median 200" in describe_times(measured.typical)
