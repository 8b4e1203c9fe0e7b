"""Banner of bin/serve: on a terminal with the key and a link.

A server with a key of its own that prints to a file is tested where one starts twice: tests/server/cli/test_serve.py.
"""

from __future__ import annotations

import os
import pty
import subprocess
import time
from pathlib import Path

import pytest

from responses_app.installation.data_dir import ROOT
from responses_app.server.cli.args import Options
from responses_app.server.cli.banner import banner
from responses_app.server.cli.model_specs import HARMONY
from tests.support import plain_http
from tests.support.server.serve_command import END_LIMIT, START_LIMIT, Server, free_port
from tests.support.suite import data_template

LINK = "/sign-in/"


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
        assert plain_http.get(link, follow_redirects=True).status_code == 200
    finally:
        process.terminate()
        process.wait(END_LIMIT)
        os.close(ours)


def test_models_and_the_first_key_are_read_from_files(tmp_path: Path, tape: str) -> None:
    models, key = tmp_path / "models", tmp_path / "key"
    models.write_text(f"mounted={tape}&tokenizer={HARMONY}\n")
    key.write_text("sk-0123456789abcdef\n")
    server = Server(tmp_path / "data", RESPONSES_MODELS_FILE=str(models), RESPONSES_API_KEY_FILE=str(key))
    server.given_key = key.read_text().strip()
    try:
        output = server.ready().output
        assert f"in {key}" in output
        assert f"$(cat {key})" in output
        assert server.ask(model="mounted").json()["status"] == "completed"
    finally:
        server.end()


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
