"""What bin/serve says when it is ready: on a terminal the key and a link, elsewhere where they are."""

from __future__ import annotations

import os
import pty
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from responses_app.installation.data_dir import ROOT
from responses_app.server.cli.args import Options
from responses_app.server.cli.banner import banner
from tests.support.server.serve_command import END_LIMIT, START_LIMIT, Server, free_port
from tests.support.suite import data_template

LINK = "/sign-in/"


@pytest.fixture
def server(tmp_path: Path, tape: str) -> Iterator[Server]:
    server = Server(tmp_path / "my data ü", "--engine", tape)
    yield server
    server.end()


def banner_command(output: str) -> str:
    """Return the command for a link as printed."""
    return next(line for line in output.splitlines() if "manage.py signin" in line).removeprefix("  sign in   ")


def run(command: str) -> str:
    """Run a command in a shell with a clean environment."""
    environ = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(["sh", "-c", command], env=environ, cwd="/", capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


def test_a_file_gets_no_secret_but_says_where_they_are(server: Server) -> None:
    output = server.ready().output
    assert server.key not in output
    assert LINK not in output
    assert f"in {server.folder}/api_key" in output
    link = run(banner_command(output))
    assert link.startswith(f"{server.url}{LINK}")
    assert httpx2.get(link, follow_redirects=True).status_code == 200
    curl = output[output.index("curl ") : output.index("Ctrl-C stops")]
    assert '"status":"completed"' in run(curl).replace(" ", "")


def test_a_file_says_that_the_key_was_given(shared: Server) -> None:
    assert shared.key not in shared.output
    assert "as given in RESPONSES_API_KEY" in shared.output


def test_a_terminal_sees_the_key_once_and_a_link(tmp_path: Path, tape: str) -> None:
    port, (ours, theirs) = free_port(), pty.openpty()
    environ = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "RESPONSES_API_KEY")}
    command = [str(ROOT / "bin" / "serve"), "--engine", tape, "--port", str(port)]
    environ |= {"RESPONSES_DATA_DIR": str(tmp_path / "data"), "RESPONSES_SANDBOX_PACKAGES": "off"}
    data_template.copy_to(tmp_path / "data")
    process = subprocess.Popen(command, env=environ, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    try:
        output = _read(ours, "Ctrl-C stops it.")
        assert output.count((tmp_path / "data" / "api_key").read_text().strip()) == 1
        link = next(word for word in output.split() if LINK in word)
        assert httpx2.get(link, follow_redirects=True).status_code == 200
    finally:
        process.terminate()
        process.wait(END_LIMIT)
        os.close(ours)


def _read(terminal: int, end: str) -> str:
    output, deadline = "", time.monotonic() + START_LIMIT
    while end not in output:
        assert time.monotonic() < deadline, output
        output += os.read(terminal, 4096).decode()
    return output


def test_the_command_names_what_is_not_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RESPONSES_API_KEY", raising=False)
    monkeypatch.setenv("RESPONSES_DATA_DIR", str(ROOT / ".data"))
    assert "RESPONSES_DATA_DIR" not in banner(Options(), ["m"])
    monkeypatch.setenv("RESPONSES_DATA_DIR", "/my data")
    output = banner(Options(port=8001), ["m"])
    assert "RESPONSES_DATA_DIR='/my data' " in output
    assert "signin --url http://127.0.0.1:8001" in output
    assert "$(cat '/my data/api_key')" in output
