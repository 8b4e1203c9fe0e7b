"""Kills around tool calls, a few; `python -m tests.chaos tool-calls` has 40."""

from __future__ import annotations

import subprocess
import sys

from responses_app.installation.data_dir import ROOT
from tests.chaos.tool_calls.places import APPROVED, FINISHING, LISTING, RUNNING, WRITING, places

LIMIT = 1200


def test_no_unsafe_tool_runs_twice() -> None:
    command = [sys.executable, "-m", "tests.chaos", "tool-calls", "--kills", "4"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "from kill to end of the response" in done.stdout


def test_places_cover_all_stages() -> None:
    assert len(places(40)) == len(set(places(40))) == 40
    assert {place.stage for place in places(40)} == {LISTING, WRITING, RUNNING, FINISHING, APPROVED}
