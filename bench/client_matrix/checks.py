"""Checks of outcomes: each returns a problem as a sentence, or None."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bench.client_matrix.outcome import Check, TaskOutcome
from bench.client_matrix.recorder import calls

MAX_SHOWN = 80


def has_all(*checks: Check) -> Check:
    """Make a check that returns the first problem of `checks`."""
    return lambda outcome: next((problem for check in checks if (problem := check(outcome))), None)


def contains(*words: str) -> Check:
    """Make a check that the last text contains all words, in any case."""

    def check(outcome: TaskOutcome) -> str | None:
        if not outcome.text.strip():
            return "no answer"
        absent = [word for word in words if word.lower() not in outcome.text.lower()]
        return f"the answer lacks {absent[0]!r}: {shorten(outcome.text)}" if absent else None

    return check


def has_calls(name: str, arguments: list[dict[str, Any]]) -> Check:
    """Make a check that the first response with calls has exactly these calls of `name`, in any order."""

    def check(outcome: TaskOutcome) -> str | None:
        made = next((made_calls for made_calls in calls(outcome.exchanges) if made_calls), [])
        if not made:
            return f"no call of {name}: {shorten(outcome.text)}"
        if wrong := [called for called, _ in made if called != name]:
            return f"wrong tool {wrong[0]}"
        decoded = [_decode(text) for _, text in made]
        if None in decoded:
            return f"arguments with invalid JSON: {shorten(made[decoded.index(None)][1])}"
        if sorted(map(repr, decoded)) != sorted(map(repr, arguments)):
            return f"{len(made)} calls with {shorten(' and '.join(text for _, text in made))}, expected {len(arguments)}"
        return None

    return check


def _decode(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def is_object(expected: Mapping[str, Any]) -> Check:
    """Make a check that the last text is a JSON object with exactly the keys and values of `expected`."""

    def check(outcome: TaskOutcome) -> str | None:
        if not outcome.text.strip():
            return "no answer"
        value = _decode(outcome.text)
        if not isinstance(value, dict):
            return f"invalid JSON: {shorten(outcome.text)}"
        wrong = value.keys() != expected.keys() or any(type(value[key]) is not type(expected[key]) for key in expected)
        if wrong:
            return f"JSON against the schema: {shorten(outcome.text)}"
        return None if value == expected else f"wrong values: {shorten(outcome.text)}"

    return check


def is_streamed(outcome: TaskOutcome) -> str | None:
    """Check that the text has arrived in several deltas, and that the deltas are the text."""
    if not outcome.text.strip():
        return "no answer"
    if len(outcome.deltas) < 2:
        return f"{len(outcome.deltas)} text deltas, expected several"
    if "".join(outcome.deltas) != outcome.text:
        return "the text deltas differ from the final text"
    return None if any(exchange.is_stream for exchange in outcome.exchanges) else "the client requested no stream"


def ran_command(word: str) -> Check:
    """Make a check that Codex ran a command with exit code 0 whose output contains `word`.

    Codex does not always print an item for a command that ends at once. Without any item, a call in a response is enough.
    """

    def check(outcome: TaskOutcome) -> str | None:
        commands = [item for item in outcome.items if item["type"] == "command_execution"]
        if not commands:
            return None if any(calls(outcome.exchanges)) else f"no command was run: {shorten(outcome.text)}"
        if any(item["exit_code"] == 0 and word in item["aggregated_output"] for item in commands):
            return None
        last = commands[-1]
        printed = shorten(last["aggregated_output"])
        return f"no command printed {word!r}: {shorten(last['command'])} ended with {last['exit_code']} and printed {printed}"

    return check


def has_file(name: str, content: str) -> Check:
    """Make a check that the file `name` has the content, white space at the ends aside."""

    def check(outcome: TaskOutcome) -> str | None:
        path = outcome.folder / name
        if not path.is_file():
            return f"there is no file {name}: {shorten(outcome.text)}"
        content_read = path.read_text(errors="replace").strip()
        return None if content_read == content.strip() else f"wrong content of {name}: {shorten(content_read)}"

    return check


def has_patch(outcome: TaskOutcome) -> str | None:
    """Check that Codex reports a changed file, as after a call of the patch tool."""
    changes = [item for item in outcome.items if item["type"] == "file_change" and item["status"] == "completed"]
    return None if changes else "no patch was applied"


def shorten(text: str) -> str:
    """Return the text in a single line of at most MAX_SHOWN characters."""
    line = " ".join(text.split())
    return repr(line if len(line) <= MAX_SHOWN else line[:MAX_SHOWN] + "…")
