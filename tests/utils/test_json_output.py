"""JSON output of programs and child processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from responses_app.installation.data_dir import ROOT
from responses_app.utils.json_output import LOGGER, MAX_LINE, json_output, to_json

# Begins a child that keeps the pipe open after the end of the program.
PROGRAM = """
import os, subprocess, sys
from responses_app.utils.json_output import json_output
with json_output(1, 2):
    print("first", flush=True)
    sys.stderr.write('{"level": "ERROR", "message": "second"}\\n')
    sys.stderr.flush()
    subprocess.run(["sh", "-c", "echo third; echo WARNING fourth >&2"], check=True)
    child = subprocess.Popen(["sleep", "60"])
    os.write(2, b"x" * int(sys.argv[1]) + b"\\n" + b"line\\n" * 50_000 + b"last, without an end")
print(child.pid)
"""


def json_lines(size: int) -> list[str]:
    """Run PROGRAM with a line of `size` bytes, kill the child, and return the lines before the pid."""
    environ = {**os.environ, "RESPONSES_LOG_FORMAT": "json"}
    command = [sys.executable, "-S", "-c", PROGRAM, str(size)]
    done = subprocess.run(
        command, env=environ, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True, timeout=120
    )
    *lines, pid = done.stdout.decode().splitlines()
    os.kill(int(pid), signal.SIGKILL)
    return lines


def test_every_line_of_the_program_and_its_children_is_json_and_in_order() -> None:
    records = [json.loads(line) for line in json_lines(10)]
    assert [record["message"] for record in records[:5]] == ["first", "second", "third", "WARNING fourth", "x" * 10]
    assert [record["level"] for record in records[:5]] == ["INFO", "ERROR", "INFO", "WARNING", "INFO"]
    assert [record["message"] for record in records[5:]] == [*["line"] * 50_000, "last, without an end"]
    assert records[0]["logger"] == LOGGER
    assert records[0]["time"] <= records[-1]["time"]


def test_a_line_of_several_megabytes_is_passed_on_in_parts() -> None:
    records = [json.loads(line) for line in json_lines(3 * MAX_LINE)]
    assert sum(record["message"].count("x") for record in records) == 3 * MAX_LINE


def test_descriptors_stay_as_they_are_with_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESPONSES_LOG_FORMAT", "text")
    former = [os.fstat(descriptor) for descriptor in (1, 2)]
    with json_output(1, 2):
        assert [os.fstat(descriptor) for descriptor in (1, 2)] == former


@pytest.mark.parametrize(
    ("line", "level", "message"),
    [
        (
            b"(EngineCore pid=7) ERROR 11-28 [core.py:1] no memory",
            "ERROR",
            "(EngineCore pid=7) ERROR 11-28 [core.py:1] no memory",
        ),
        (b"[1, 2]", "INFO", "[1, 2]"),
        (b"{not JSON", "INFO", "{not JSON"),
        pytest.param(b'{"a":' * 10_000, "INFO", '{"a":' * 10_000, id="nested"),
        (b"\xff\x1b[31m\r", "INFO", "\ufffd\x1b[31m"),
    ],
)
def test_line_of_text_becomes_a_message(line: bytes, level: str, message: str) -> None:
    encoded = to_json(line)
    assert encoded.isascii()
    record = json.loads(encoded)
    assert (record["level"], record["message"]) == (level, message)


@pytest.mark.slow
def test_a_reader_that_leaves_does_not_stop_the_program(tmp_path: Path) -> None:
    script = "from responses_app.utils.json_output import json_output\nimport os, sys\nwith json_output(1):\n" + (
        "    for _ in range(40):\n        os.write(1, b'line\\n' * 10_000)\nopen(sys.argv[1], 'w').write('ended')\n"
    )
    environ = {**os.environ, "RESPONSES_LOG_FORMAT": "json"}
    file = tmp_path / "end"
    with subprocess.Popen([sys.executable, "-c", script, str(file)], env=environ, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(120) == 0
    assert file.read_text() == "ended"
