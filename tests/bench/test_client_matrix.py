"""Checks, verdicts and tables of the client matrix, and the recording of exchanges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.client_matrix import checks, recorder
from bench.client_matrix.outcome import Check, TaskOutcome, TaskResult, Verdict, judge
from bench.client_matrix.recorder import Exchange
from bench.client_matrix.recording import NAME
from bench.client_matrix.table import format_results
from responses_app.installation.data_dir import ROOT

PERSON = {"name": "Ada", "age": 36}
PARIS = {"city": "Paris"}
WEATHER = checks.has_calls("get_weather", [PARIS])


def called(*made: tuple[str, str]) -> Exchange:
    """Make the exchange of a response with function calls."""
    return Exchange(
        200, {"output": [{"type": "function_call", "name": name, "arguments": arguments} for name, arguments in made]}
    )


def command(output: str, exit_code: int) -> dict[str, Any]:
    """Make an item of Codex."""
    return {"type": "command_execution", "command": "cat it", "aggregated_output": output, "exit_code": exit_code}


@pytest.mark.parametrize(
    ("check", "outcome", "problem"),
    [
        (checks.contains("42"), {"texts": ["It is 42."]}, None),
        (checks.contains("42"), {"texts": []}, "no answer"),
        (checks.contains("42"), {"texts": ["42", "43"]}, "the answer lacks '42': '43'"),
        (WEATHER, {"exchanges": [called(("get_weather", json.dumps(PARIS)))]}, None),
        (WEATHER, {"texts": ["Sunny."]}, "no call of get_weather: 'Sunny.'"),
        (WEATHER, {"exchanges": [called(("get_time", "{}"))]}, "wrong tool get_time"),
        (WEATHER, {"exchanges": [called(("get_weather", "{"))]}, "arguments with invalid JSON: '{'"),
        (WEATHER, {"exchanges": [called(("get_weather", "{}"))]}, "1 calls with '{}', expected 1"),
        (checks.is_object(PERSON), {"texts": [json.dumps(PERSON)]}, None),
        (checks.is_object(PERSON), {"texts": ["Ada"]}, "invalid JSON: 'Ada'"),
        (checks.is_object(PERSON), {"texts": ['{"name": "Ada"}']}, 'JSON against the schema: \'{"name": "Ada"}\''),
        (checks.is_object(PERSON), {"texts": ['{"name": "Ada", "age": 1}']}, 'wrong values: \'{"name": "Ada", "age": 1}\''),
        (checks.is_streamed, {"texts": ["ab"], "deltas": ["ab"]}, "1 text deltas, expected several"),
        (checks.is_streamed, {"texts": ["ab"], "deltas": ["a", "c"]}, "the text deltas differ from the final text"),
        (checks.is_streamed, {"texts": ["ab"], "deltas": ["a", "b"]}, "the client requested no stream"),
        (checks.ran_command("pelican"), {"items": [command("pelican", 0)]}, None),
        (checks.ran_command("pelican"), {"texts": ["pelican"]}, "no command was run: 'pelican'"),
        (
            checks.ran_command("pelican"),
            {"items": [command("no file", 1)]},
            "no command printed 'pelican': 'cat it' ended with 1 and printed 'no file'",
        ),
        (checks.has_file("hello.txt", "hi"), {"texts": ["Done."]}, "there is no file hello.txt: 'Done.'"),
        (checks.has_patch, {"items": [{"type": "file_change", "status": "failed"}]}, "no patch was applied"),
    ],
)
def test_checks_name_the_problem(check: Check, outcome: dict[str, Any], problem: str | None, tmp_path: Path) -> None:
    assert check(TaskOutcome(tmp_path, **outcome)) == problem


REFUSED = Exchange(400, {"error": {"message": "The model has no images."}})
INCOMPLETE = Exchange(200, {"incomplete_details": {"reason": "max_output_tokens"}, "error": None})


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ({"texts": ["42"]}, ("pass", "")),
        ({"texts": ["43"]}, ("fail", "the answer lacks '42': '43'")),
        ({"timed_out": "timeout after 9 s"}, ("fail", "timeout after 9 s")),
        ({"error": "APIError: no"}, ("fail", "APIError: no")),
        ({"error": "APIError: no", "exchanges": [REFUSED]}, ("fail", "HTTP 400: The model has no images.")),
        ({"exchanges": [INCOMPLETE]}, ("fail", "the response ended incomplete: max_output_tokens")),
        ({"texts": ["42"], "exchanges": [INCOMPLETE]}, ("pass", "")),
        (
            {"texts": ["42"], "exchanges": [Exchange(200, {}, is_stream=True, violations=["L1  no end"])]},
            ("fail", "the stream breaks a rule: L1 no end"),
        ),
    ],
)
def test_verdict_names_the_nearest_cause(outcome: dict[str, Any], expected: tuple[str, str], tmp_path: Path) -> None:
    assert judge(TaskOutcome(tmp_path, **outcome), checks.contains("42")) == expected


def test_model_without_images_skips_the_task(tmp_path: Path) -> None:
    outcome = TaskOutcome(tmp_path, exchanges=[REFUSED])
    assert judge(outcome, checks.contains("red"), needs_images=True) == ("skip", "the model does not accept images")


def test_recorder_finds_the_broken_rules_of_a_stream() -> None:
    event = {"type": "response.created", "sequence_number": 5}
    recorded = recorder.exchange(200, "text/event-stream", f"event: response.created\ndata: {json.dumps(event)}\n\n".encode())
    assert recorded.violations
    assert recorded.response == {}


def test_table_has_a_column_for_each_model_and_the_reasons() -> None:
    results = [
        TaskResult("small", "codex", "read", "fail", "a | b", 1.25, (10, 2)),
        TaskResult("large", "codex", "read", "pass", "", 2.0, (11, 3)),
        TaskResult("large", "codex", "image", "skip", "no images"),
    ]
    assert format_results(results).splitlines() == [
        "| client | task | small | large |",
        "|---|---|---|---|",
        "| codex | read | fail, 1.2 s, 10 + 2 | pass, 2.0 s, 11 + 3 |",
        "| codex | image |  | skip |",
        "| passed |  | 0 of 1 | 1 of 1 |",
        "",
        "| model | client | task | result | cause | reason |",
        "|---|---|---|---|---|---|",
        "| small | codex | read | fail | unknown | a \\| b |",
        "| large | codex | image | skip |  | no images |",
    ]


@pytest.mark.parametrize(
    ("recorded", "cause"), [("pass", "model"), ("fail", "client or server"), ("skip", "unknown"), (None, "unknown")]
)
def test_table_names_the_cause_of_a_failure(recorded: Verdict | None, cause: str) -> None:
    results = [TaskResult("small", "codex", "read", "fail", "no file"), TaskResult(NAME, "codex", "write", "pass")]
    results += [TaskResult(NAME, "codex", "read", recorded)] if recorded else []
    assert f"| small | codex | read | fail | {cause} | no file |" in format_results(results).splitlines()


PINS = ("bench/client_matrix/drivers/node/package.json", "tests/clients/node/package.json")


def test_matrix_and_client_tests_use_the_same_versions() -> None:
    matrix, tested = (json.loads((ROOT / path).read_text())["dependencies"] for path in PINS)
    assert matrix.items() <= tested.items()
    required, also_tested = (
        set((ROOT / folder / "requirements.txt").read_text().split())
        for folder in ("bench/client_matrix/drivers/python", "tests/clients/python")
    )
    assert required <= also_tested
