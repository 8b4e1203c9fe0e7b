"""The judge as a command, and how it reads captured bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from responses_app.protocol.conformance import validate_sse
from responses_app.protocol.conformance.__main__ import main
from responses_app.protocol.deltas import Call, TextDelta
from responses_app.protocol.events import Event
from tests.support.protocol.response_strategies import write_response

ROOT = Path(__file__).parents[2]


def sse(events: Iterable[Event], *, done: bool = True) -> bytes:
    """Encode the events as a server's stream."""
    blocks = [f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events]
    return "".join([*blocks, "data: [DONE]\n\n" if done else ""]).encode()


CLEAN = sse(write_response([TextDelta("aé😀"), Call("f")])[0])


def run(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "responses_app.protocol.conformance", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, cwd=ROOT, check=False, timeout=60)


def rules(captured: bytes) -> list[str]:
    return [broken.rule for broken in validate_sse([captured])]


def test_a_clean_stream_on_standard_input_is_one_line_and_exit_0() -> None:
    done = run(stdin=CLEAN)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"13 events, no violations\n", b"")


def test_a_broken_stream_in_a_file_is_one_line_per_violation_and_exit_1(tmp_path: Path) -> None:
    events, _ = write_response([TextDelta("a")])
    captured = tmp_path / "captured.sse"
    captured.write_bytes(sse([*events[:-2], {**events[-2], "item": {**events[-2]["item"], "id": "msg_x"}}]))
    done = run(str(captured))
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 1
    assert [line.split()[0] for line in lines[:-1]] == ["I2", "L5"]
    assert lines[0].startswith("I2  #7 response.output_item.done  id was 'msg_0' and is 'msg_x'  {")
    assert lines[-1] == "8 events, 2 violations"


def test_command_validates_by_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    captured = tmp_path / "captured.sse"
    captured.write_bytes(sse(write_response([Call("f", "custom")])[0]))
    assert (main([str(captured)]), main([str(captured), "--profile", "openresponses"])) == (0, 1)
    assert "S5  #3 response.custom_tool_call_input.done" in capsys.readouterr().out


def test_command_validates_a_resumed_stream(tmp_path: Path) -> None:
    captured = tmp_path / "captured.sse"
    captured.write_bytes(sse(write_response([TextDelta("a")])[0][5:]))
    assert (main([str(captured), "--starting-after", "4"]), main([str(captured)])) == (0, 1)


@pytest.mark.parametrize("rubbish", [b"", b": ping\n\n", b"\xff\xfe\n\n"])
def test_input_that_is_no_stream_is_exit_2(rubbish: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    captured = tmp_path / "captured.sse"
    captured.write_bytes(rubbish)
    assert main([str(captured)]) == 2
    assert capsys.readouterr().err


def test_a_file_that_is_not_there_is_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "nothing")]) == 2
    assert "nothing" in capsys.readouterr().err


def test_options_that_do_not_exist_are_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--profile", "other"])
    assert left.value.code == 2


# Framing


def test_the_end_mark_and_comments_are_no_events() -> None:
    assert rules(CLEAN) == rules(CLEAN.replace(b"data: [DONE]\n\n", b"")) == rules(b": ping\n\n" + CLEAN) == []


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_chunks_may_be_cut_anywhere(size: int) -> None:
    assert validate_sse(CLEAN[at : at + size] for at in range(0, len(CLEAN), size)) == []


def test_a_last_block_without_its_blank_line_counts() -> None:
    assert rules(CLEAN.removesuffix(b"data: [DONE]\n\n").rstrip(b"\n")) == []


def test_s1_the_event_field_must_be_there_and_equal_the_type() -> None:
    """C14."""
    assert rules(CLEAN.replace(b"event: response.created\n", b"")) == ["S1"]
    assert rules(CLEAN.replace(b"event: response.created", b"event: message")) == ["S1"]


def test_s1_one_data_line_and_bare_line_feeds() -> None:
    assert rules(CLEAN.replace(b'data: {"type": "response.created",', b'data: {"type": "response.created",\ndata:')) == ["S1"]
    assert set(rules(CLEAN.replace(b"\n", b"\r\n"))) == {"S1"}


@pytest.mark.parametrize("field", [b"id: 1", b"retry: 5", b"id"])
def test_s7_no_other_fields(field: bytes) -> None:
    assert rules(CLEAN.replace(b"event: response.created", field + b"\nevent: response.created")) == ["S7"]
    assert rules(field + b"\n\n" + CLEAN) == ["S7"]


def test_s0_data_must_be_an_object() -> None:
    assert rules(b"event: x\ndata: {\n\n" + CLEAN) == ["S0"]
    assert rules(b"event: x\n\n" + CLEAN) == ["S0"]
    assert rules(b"data: [1]\n\n" + CLEAN) == ["S0"]


@pytest.mark.parametrize("constant", [b"NaN", b"Infinity", b"-Infinity"])
def test_s0_json_has_no_nan(constant: bytes) -> None:
    captured = CLEAN.replace(b'"temperature": 1.0', b'"temperature": ' + constant, 1)
    assert captured != CLEAN
    assert "S0" in rules(captured)


def test_half_a_character_can_be_told(tmp_path: Path) -> None:
    file = tmp_path / "half.sse"
    file.write_bytes(CLEAN.replace(b'"type": "message"', b'"type": "\\ud800"', 1))
    result = run(str(file))
    assert (result.returncode, result.stderr) == (1, b"")
    assert b"\\ud800" in result.stdout


def test_l4_nothing_comes_after_the_end_mark() -> None:
    assert rules(CLEAN + b"data: [DONE]\n\n") == ["L4"]
    first, last = CLEAN.split(b"event: response.completed")
    assert rules(first + b"data: [DONE]\n\nevent: response.completed" + last) == ["L4", "L4", "L5"]


def test_g5_an_error_as_bare_json_in_the_stream_is_no_end() -> None:
    half = CLEAN.split(b"event: response.output_item.done")[0]
    assert rules(half + b'data: {"error": {"message": "m"}}\n\ndata: [DONE]\n\n') == ["S0", "L5"]
