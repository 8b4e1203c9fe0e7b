"""The command `manage.py sandbox`."""

from __future__ import annotations

import json
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


@override_settings(RESPONSES_SANDBOX_TOKEN="token")
@pytest.mark.parametrize("address", ["unix:", "unix:own.sock", "own.sock", "https://127.0.0.1:1", "http://127.0.0.1"])
def test_address_of_another_form_is_refused(address: str) -> None:
    with pytest.raises(CommandError, match="--listen must be unix:/path/of/socket or http://host:port"):
        call_command("sandbox", listen=address)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "json"])
def test_sandbox_serves_on_a_socket_until_ended(tmp_path: Path, form: str) -> None:
    url = f"unix:{tmp_path / 'own.sock'}"
    environ = {**os.environ, "RESPONSES_DATA_DIR": str(tmp_path), "RESPONSES_SANDBOX_RUN_TIMEOUT": "1"}
    # No package index: the runner offers the standard library alone.
    environ |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}
    command = [sys.executable, str(ROOT / "manage.py"), "sandbox", "--listen", url]
    with (tmp_path / "output").open("wb") as out:
        process = subprocess.Popen(command, env=environ | {"RESPONSES_LOG_FORMAT": form}, stdout=out, stderr=out)
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
    lines = (tmp_path / "output").read_text().splitlines()
    messages = [json.loads(line)["message"] for line in lines] if form == "json" else lines
    assert messages[0] == f"Serving the sandbox at {url}; Ctrl-C ends it."


@pytest.mark.slow
def test_refusal_of_a_start_is_json(tmp_path: Path) -> None:
    environ = {**os.environ, "RESPONSES_DATA_DIR": str(tmp_path), "RESPONSES_LOG_FORMAT": "json", "RESPONSES_SANDBOX_TOKEN": ""}
    command = [sys.executable, str(ROOT / "manage.py"), "sandbox", "--listen", "http://127.0.0.1:1"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0
    assert "RESPONSES_SANDBOX_TOKEN" in json.loads(done.stderr)["message"]
