"""The races and the restarts, a few of each: what they are for needs more of them, and a quiet machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

from responses_app.installation.data_dir import ROOT

LIMIT = 1200


@pytest.mark.parametrize(
    ("program", "arguments", "says"),
    [
        ("races", ("--cancels", "24", "--follows", "4"), "followed through two processes"),
        ("restarts", ("--responses", "12", "--kills", "4"), "killed: the supervisor"),
    ],
)
def test_program_finds_no_contradiction(program: str, arguments: tuple[str, ...], says: str) -> None:
    command = [sys.executable, "-m", "tests.chaos", program, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert says in done.stdout
