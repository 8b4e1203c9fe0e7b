"""Codex, unmodified: a command, a session that goes on, an answer by a schema, a patch."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients.drive import LIMIT_S
from tests.support.clients.tapes import PERSON
from tests.support.server.serve_command import Server

SETTINGS = """
model_provider = "local"
model_context_window = 100000
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.local]
name = "local"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = {sockets}
"""
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
FREE = ("--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")

Codex = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Return the work folder of Codex."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def codex(installed: Callable[[str], Path], server: Server, environ: dict[str, str], tmp_path: Path, work: Path) -> Codex:
    """Run `codex exec` and return the printed items, without reasoning and without the error of unknown metadata."""
    home = tmp_path / "home"
    home.mkdir()
    program = installed("codex") / "node_modules" / ".bin" / "codex"

    def run(*arguments: str, sockets: bool = False) -> list[dict[str, Any]]:
        (home / "config.toml").write_text(SETTINGS.format(url=server.url, sockets=str(sockets).lower()))
        result = subprocess.run(
            [program, "exec", *arguments],
            cwd=work,
            env={**environ, "CODEX_HOME": str(home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        events = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
        items = [one["item"] for one in events if one["type"] == "item.completed"]
        return [item for item in items if item["type"] not in ("error", "reasoning")]

    return run


def test_codex_runs_a_command_resumes_and_follows_a_schema(codex: Codex, work: Path, tmp_path: Path) -> None:
    command, message = codex("-m", "codex", *FREE, "Make a file.")
    assert (command["type"], command["exit_code"], message["text"]) == ("command_execution", 0, "Made.")
    assert (work / "made.txt").read_text() == "made\n"
    assert [item["text"] for item in codex("resume", "--last", "-m", "codex", *FREE, "Go on.")] == ["Resumed."]
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(SCHEMA))
    (answer,) = codex("-m", "codex", *FREE, "--output-schema", str(schema), "Who?")
    assert json.loads(answer["text"]) == PERSON


def test_codex_runs_a_command_over_a_socket(codex: Codex, work: Path, server: Server) -> None:
    command, message = codex("-m", "codex-sockets", *FREE, "Make a file.", sockets=True)
    assert (command["type"], command["exit_code"], message["text"]) == ("command_execution", 0, "Made.")
    assert (work / "made.txt").read_text() == "made\n"
    (message,) = codex("resume", "--last", "-m", "codex-sockets", *FREE, "Go on.", sockets=True)
    assert message["text"] == "Resumed."
    # It falls back to HTTP by itself, and says so nowhere that a test could see.
    ends = re.findall(r"WebSocket closed .*, (\d+) responses", server.output)
    assert sum(map(int, ends[-2:])) >= 3, server.output[-2000:]


def test_codex_patches_a_file_with_a_grammar_tool(codex: Codex, work: Path) -> None:
    change, message = codex("-m", "gpt-5.5", *FREE, "Write hello.")
    assert (change["type"], change["status"], message["text"]) == ("file_change", "completed", "Patched.")
    assert (work / "hello.txt").read_text() == "Hello!\n"
