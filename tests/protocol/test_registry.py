"""The registry of item families, and the rule that the rest of the code uses it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from responses_app.protocol import deltas
from responses_app.protocol.conformance.spec import EVENTS, ITEMS
from responses_app.protocol.items.base import Delta
from responses_app.protocol.items.registry import FAMILIES

ROOT: Final = Path(__file__).parents[2]
SUFFIX_GUESS: Final = re.compile(r"""(endswith|removesuffix|startswith)\(["']_call|["']_call["']|_call["'] in """)


def test_every_delta_is_exported() -> None:
    of_families = {delta for family in FAMILIES.values() for delta in (*family.opened_by, *family.steps, *family.results)}
    bases = {deltas.Delta, deltas.OpenedWhenComplete}
    general = bases | {deltas.Arguments, deltas.EndItem, deltas.ForItem, deltas.OutputProblem}
    exported = {getattr(deltas, name) for name in deltas.__all__} - {deltas.Json}
    assert exported == of_families | general
    assert all(issubclass(delta, Delta) for delta in exported)


def test_every_family_and_every_event_is_known_to_the_checker() -> None:
    events = {name for family in FAMILIES.values() for name in family.event_types()}
    assert {*FAMILIES.id_prefixes} - ITEMS["openai"] == {"configuration_update"}
    assert events - EVENTS["openai"] == {"response.reasoning.delta"}


@pytest.mark.parametrize(
    ("output", "call"),
    [
        ("function_call_output", "function_call"),
        ("tool_search_output", "tool_search_call"),
        ("program_output", "program"),
    ],
)
def test_an_output_answers_the_call_of_its_family(output: str, call: str) -> None:
    assert FAMILIES.calls_by_output[output] == call


def test_an_approval_does_not_answer_by_call_id() -> None:
    assert "mcp_approval_response" not in FAMILIES.calls_by_output


@pytest.mark.parametrize(
    ("event_type", "family"),
    [
        ("response.mcp_list_tools.in_progress", "mcp_list_tools"),
        ("response.shell_call_command.delta", "shell_call"),
        ("response.output_text.delta", "message"),
        ("response.output_item.added", None),
    ],
)
def test_events_belong_to_a_family(event_type: str, family: str | None) -> None:
    event_family = FAMILIES.of_event(event_type)
    assert (event_family and event_family.type) == family


def test_no_module_guesses_a_family_from_the_suffix_of_its_type() -> None:
    sources = (path for folder in ("responses_app", "bench") for path in (ROOT / folder).rglob("*.py"))
    guesses = [str(path.relative_to(ROOT)) for path in sources if SUFFIX_GUESS.search(path.read_text())]
    assert guesses == []
