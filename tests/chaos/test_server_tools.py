"""Kills during code and an upload; `python -m tests.chaos server-tools` has nine cases and uploads of 200 MiB."""

from __future__ import annotations

import subprocess
import sys

import pytest

from responses_app.installation.data_dir import ROOT
from tests.chaos.server_tools.attack_codes import ATTACKS
from tests.chaos.server_tools.drill import CASES, CODE, INGESTION, UPLOAD
from tests.chaos.server_tools.target import RUNNER, SERVER, WEB

LIMIT_S = 1200


@pytest.mark.parametrize("case", [pytest.param((CODE, RUNNER), id="code"), pytest.param((UPLOAD, WEB), id="upload")])
def test_kill_loses_nothing_and_leaves_nothing(case: tuple[str, str]) -> None:
    arguments = ["--kills", str(CASES.index(case)), "--megabytes", "20"]
    command = [sys.executable, "-m", "tests.chaos", "server-tools", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr


def test_cases_cover_all_activities_and_victims() -> None:
    assert set(CASES) == {(activity, victim) for activity in (CODE, UPLOAD, INGESTION) for victim in (WEB, RUNNER, SERVER)}
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)
