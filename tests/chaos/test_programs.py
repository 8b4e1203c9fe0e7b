"""Short runs of the programs of `python -m tests.chaos`; without these options the programs do more."""

from __future__ import annotations

import subprocess
import sys

import pytest

from responses_app.installation.data_dir import ROOT
from tests.chaos.server_tools.attack_codes import ATTACKS
from tests.chaos.server_tools.drill import CASES, CODE, INGESTION, UPLOAD
from tests.chaos.server_tools.target import RUNNER, SERVER, WEB
from tests.chaos.tool_calls.places import APPROVED, FINISHING, LISTING, RUNNING, WRITING, places

LIMIT_S = 1200
FEW = "--responses 8 --kills 1 --stops 1 --pauses 0 --cuts 1 --restarts 0 --web 2"


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        pytest.param(f"system --engine script --seed 5 --seconds 600 {FEW}", ("fault: kill", "CONTRADICTIONS"), id="system"),
        pytest.param("races --cancels 8 --follows 2", ("followed through two processes",), id="races"),
        pytest.param("restarts --responses 12 --kills 4", ("killed: the supervisor",), id="restarts"),
        pytest.param(
            f"server-tools --kills {CASES.index((CODE, RUNNER))} {CASES.index((UPLOAD, WEB))} --megabytes 20",
            ("run of code, runner killed", "upload, web process killed"),
            id="server-tools",
        ),
        pytest.param("tool-calls --kills 3", ("from kill to end of the response",), id="tool-calls"),
    ],
)
def test_program_finds_no_contradiction(options: str, shown: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "tests.chaos", *options.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(line in done.stdout for line in shown), done.stdout


def test_cases_of_server_tools_cover_all_activities_and_victims() -> None:
    assert set(CASES) == {(activity, victim) for activity in (CODE, UPLOAD, INGESTION) for victim in (WEB, RUNNER, SERVER)}
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)


def test_places_of_tool_calls_cover_all_stages() -> None:
    assert len(places(40)) == len(set(places(40))) == 40
    assert {place.stage for place in places(40)} == {LISTING, WRITING, RUNNING, FINISHING, APPROVED}
