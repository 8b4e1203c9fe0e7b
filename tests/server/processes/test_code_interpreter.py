"""A whole server that runs code in its own sandbox, and is killed."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from responses_app.dialects.harmony.dialect import HarmonyDialect
from responses_app.server.supervision.process_tree import command_line
from tests.support import plain_http
from tests.support.server.processes import is_alive
from tests.support.server.serve_command import Server
from tests.support.server.silent_index import silent_index
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow
TOOL = {"type": "code_interpreter", "container": {"type": "auto"}}


def record(folder: Path) -> Path:
    """Write a tape: a call of the Python tool behind the input, and an answer behind the result."""
    encoding = HarmonyDialect().encoding
    code = "import os\nprint(6 * 7, os.getuid())"
    texts = {
        " run code": f"<|channel|>analysis to=python code<|message|>{code}<|call|>",
        "42 65534": "<|channel|>final<|message|>It is 42.<|return|>",
    }
    lines = [
        {"match": encoding.encode(words), "chunks": [{"tokens": encoding.encode(text, allowed_special="all")}]}
        for words, text in texts.items()
    ]
    tape = folder / "tape.jsonl"
    tape.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return tape


def sandbox_processes(server: Server) -> list[psutil.Process]:
    """Return the processes of the server's sandbox, with the installer of packages."""
    children = psutil.Process(server.process.pid).children(recursive=True)
    names = ("responses_app.sandbox", "/sandbox/inside", "pip")
    return [process for process in children if any(name in command_line(process.pid) for name in names)]


@pytest.fixture
def silent() -> Iterator[dict[str, Any]]:
    """Yield settings with which the server installs packages from an index that never answers."""
    with silent_index() as environ:
        yield {"RESPONSES_SANDBOX_PACKAGES": "on", **environ}


def test_server_runs_code_while_packages_are_installed_and_leaves_no_process_behind(
    tmp_path: Path, silent: dict[str, Any]
) -> None:
    with Server(tmp_path / "data", "--engine", f"script://{record(tmp_path)}", **silent) as server:
        server.ready()
        state = "The packages of containers (numpy, pandas, matplotlib, pillow) are being installed for"
        assert state in server.output
        with plain_http.client(follow_redirects=True) as browser:
            browser.get(server.manage("signin", "--url", server.url))
            assert state in browser.get(f"{server.url}/containers").text
        wait_until(lambda: any("--target" in command_line(process.pid) for process in sandbox_processes(server)), limit_s=60)
        assert not any("launcher" in command_line(process.pid) for process in sandbox_processes(server))
        answer = server.ask(input="Please run code", tools=[TOOL], include=["code_interpreter_call.outputs"])
        assert answer.status_code == 200, server.output
        call = next(item for item in answer.json()["output"] if item["type"] == "code_interpreter_call")
        assert call["outputs"] == [{"type": "logs", "logs": "42 65534"}]
        left = sandbox_processes(server)
        assert left
        server.process.send_signal(signal.SIGKILL)
        wait_until(lambda: not any(map(is_alive, left)))


def test_server_refuses_the_tool_when_the_code_interpreter_is_off(tmp_path: Path) -> None:
    engine = f"script://{record(tmp_path)}"
    with Server(tmp_path / "data", "--engine", engine, RESPONSES_CODE_INTERPRETER="off") as server:
        server.ready()
        answer = server.ask(input="Please run code", tools=[TOOL])
        assert answer.status_code == 400
        assert "RESPONSES_CODE_INTERPRETER" in answer.json()["error"]["message"]
