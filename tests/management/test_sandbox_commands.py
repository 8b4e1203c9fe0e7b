"""The command `manage.py sandbox`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from responses_app.installation.data_dir import ROOT
from tests.support.sandbox.runner import Runner
from tests.support.waiting import wait_until


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
        assert process.wait(60) != 0
    finally:
        process.kill()
        process.wait()
