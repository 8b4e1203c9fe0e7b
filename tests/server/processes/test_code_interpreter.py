"""A whole server that runs code in its own sandbox, and is killed."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import psutil
import pytest

from responses_app.dialects.harmony.dialect import HarmonyDialect
from tests.support.server.serve_command import Server
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
    """Return the processes of the server's sandbox."""
    found = psutil.Process(server.process.pid).children(recursive=True)
    names = ("responses_app.sandbox", "/sandbox/inside")
    return [process for process in found if any(name in " ".join(process.cmdline()) for name in names)]


def is_alive(process: psutil.Process) -> bool:
    """Return True unless the process has ended."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_server_runs_code_and_leaves_no_process_behind(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", "--engine", f"script://{record(tmp_path)}")
    try:
        server.ready()
        assert sandbox_processes(server) == []
        answer = server.ask(input="Please run code", tools=[TOOL], include=["code_interpreter_call.outputs"])
        assert answer.status_code == 200, server.output
        call = next(item for item in answer.json()["output"] if item["type"] == "code_interpreter_call")
        assert call["outputs"] == [{"type": "logs", "logs": "42 65534"}]
        left = sandbox_processes(server)
        assert left
        server.process.send_signal(signal.SIGKILL)
        wait_until(lambda: not any(map(is_alive, left)))
    finally:
        server.end()


def test_server_refuses_the_tool_when_the_code_interpreter_is_off(tmp_path: Path) -> None:
    engine = f"script://{record(tmp_path)}"
    server = Server(tmp_path / "data", "--engine", engine, RESPONSES_CODE_INTERPRETER="off")
    try:
        server.ready()
        answer = server.ask(input="Please run code", tools=[TOOL])
        assert answer.status_code == 400
        assert "RESPONSES_CODE_INTERPRETER" in answer.json()["error"]["message"]
    finally:
        server.end()
