"""JSON output of a real server: start, kill and end."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from responses_app.server.cli.model_specs import HARMONY
from responses_app.utils.json_output import LOGGER
from tests.support.server.processes import family, left, named
from tests.support.server.serve_command import END_LIMIT, Server


def start(folder: Path, tape: str) -> Server:
    """Start a server with JSON output and an unknown variable."""
    models = f"tape={tape}&tokenizer={HARMONY}"
    return Server(folder, RESPONSES_MODELS=models, RESPONSES_LOG_FORMAT="json", RESPONSES_MODLES="1")


def records_of(server: Server) -> list[dict[str, Any]]:
    """Return the records of the output. Fails for a line that is no JSON object."""
    records = [json.loads(line) for line in server.output.splitlines()]
    assert all(isinstance(record, dict) and record["level"] and record["logger"] for record in records)
    return records


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_every_line_of_a_server_is_json_to_its_end(tape: str, tmp_path: Path, number: signal.Signals) -> None:
    server = start(tmp_path / "data", tape)
    try:
        server.ready()
        os.kill(named(server.process.pid, "responses_app.server.processes.main"), number)
        code = server.process.wait(END_LIMIT)
    finally:
        server.end()
    messages = {record["message"]: record for record in records_of(server) if "message" in record}
    (step,) = [message for message in messages if message.startswith("Preparing the database: ")]
    assert messages[step]["logger"] == LOGGER
    (warning,) = [message for message in messages if "RESPONSES_MODLES" in message]
    assert messages[warning]["level"] == "WARNING"
    if number == signal.SIGTERM:
        assert code == 0
        assert "Stopped." in messages
    else:
        assert "serve: the server was ended by SIGKILL; what it had started is ended now." in messages


def test_processes_of_a_killed_outer_process_end(tape: str, tmp_path: Path) -> None:
    server = start(tmp_path / "data", tape)
    try:
        server.ready()
        processes = family(server.process.pid)
        server.process.kill()
        assert left(processes) == []
    finally:
        server.end()
    assert records_of(server)
