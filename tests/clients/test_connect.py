"""Clients with the configuration of `manage.py connect` alone."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients.drive import LIMIT_S
from tests.support.server.serve_command import Server

OURS = ("OPENAI_", "CODEX_", "XDG_", "VERBATIM_", "LLM_", "CONTINUE_")
Run = Callable[..., str]


@pytest.fixture
def run(server: Server, environ: dict[str, str], tmp_path: Path) -> Run:
    """Connect an agent in an empty home folder, run commands of the agent there, and return the output of the last command."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    kept_environ = {name: value for name, value in environ.items() if not name.startswith(OURS)}

    def run(agent: str, *commands: Sequence[str | Path]) -> str:
        options = ("--url", server.url, "--model", f"connected-{agent}", "--home", str(home), "--write")
        connected = server.manage("connect", agent, *options, XDG_CONFIG_HOME="")
        assert "The model answered" in connected
        variables = [
            line.removeprefix("export ").partition("=") for line in connected.splitlines() if line.startswith("export ")
        ]
        printed = ""
        for command in commands:
            result = subprocess.run(
                command,
                cwd=work,
                env={**kept_environ, "HOME": str(home), **{name: value.strip("'") for name, _, value in variables}},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
            assert result.returncode == 0, result.stdout + result.stderr
            printed = result.stdout + result.stderr
        return printed

    return run


def test_connected_codex_knows_the_model_and_uses_a_socket(
    run: Run, installed: Callable[[str], Path], server: Server, tmp_path: Path
) -> None:
    program = installed("codex") / "node_modules" / ".bin" / "codex"
    options = ("--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
    printed = run("codex", [program, "exec", *options, "Make a file."])
    assert "metadata" not in printed
    assert "failed to refresh" not in printed
    events = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    items = [event["item"] for event in events if event["type"] == "item.completed"]
    assert [item["type"] for item in items] == ["reasoning", "command_execution", "agent_message"]
    assert (items[0]["text"], items[2]["text"]) == ("I need it.", "Made.")
    assert (tmp_path / "work" / "made.txt").read_text() == "made\n"
    cached: dict[str, Any] = json.loads((tmp_path / "home" / ".codex" / "models_cache.json").read_text())
    (model,) = [model for model in cached["models"] if model["slug"] == "connected-codex"]
    assert model["context_window"] == 131072
    ends = re.findall(r"WebSocket closed .*, (\d+) responses", server.output)
    assert int(ends[-1]) >= 2, server.output[-2000:]


def test_connected_opencode_shows_the_answer_and_the_reasoning(run: Run, installed: Callable[[str], Path]) -> None:
    # The package has a script behind its installation that copies this program.
    program = min(installed("opencode").glob("node_modules/opencode-linux-*/bin/opencode"))
    printed = run("opencode", [program, "run", "--thinking", "How many?"])
    assert "Forty-two." in printed
    assert "Hm." in printed


def test_connected_llm_answers_without_the_reasoning_that_it_would_show_twice(
    run: Run, installed: Callable[[str], Path]
) -> None:
    program = installed("llm").parent / "llm"
    assert run("llm", [program, "-m", "verbatim/connected-llm", "-R", "How many?"]).strip() == "Forty-two."


def test_connected_claude_code_ends_a_loop_of_ten_turns_and_resumes(
    run: Run, installed: Callable[[str], Path], tmp_path: Path
) -> None:
    # The package has a script behind its installation that copies this program.
    program = min(installed("programs").glob("node_modules/@anthropic-ai/claude-code-linux-*/claude"))
    options = ("--allowedTools", "Bash,Read,Edit,Write", "--output-format", "json")
    printed = run(
        "claude-code", [program, "-p", "Do ten things.", *options, "--verbose"], [program, "-p", "-c", "Go on.", *options]
    )
    assert json.loads(printed.splitlines()[0])["result"] == "Resumed."
    assert (tmp_path / "work" / "one.txt").read_text() == "two\n"
    assert (tmp_path / "work" / "main.py").read_text() == "print(6 * 8)\n"


def test_connected_continue_runs_a_command(run: Run, installed: Callable[[str], Path], tmp_path: Path) -> None:
    program = installed("programs") / "node_modules" / ".bin" / "cn"
    assert "Made." in run("continue", [program, "-p", "--auto", "Make a file."])
    assert (tmp_path / "work" / "made.txt").read_text() == "made\n"


def test_connected_aider_writes_a_file(run: Run, installed: Callable[[str], Path], tmp_path: Path) -> None:
    program = installed("aider").parent / "aider"
    options = ("--yes-always", "--no-git", "--no-check-update", "--no-analytics", "--no-show-release-notes")
    printed = run("aider", [program, "--model", "openai/connected-aider", *options, "--message", "Write hello.py."])
    assert (tmp_path / "work" / "hello.py").read_text() == "print('Hello!')\n"
    # Aider warns of models without metadata.
    assert "Unknown" not in printed
