"""The command `manage.py model`."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from responses_app.installation.data_dir import ROOT

pytestmark = pytest.mark.slow

DEMO = ROOT / "responses_app/demo/chat_files"
PLAIN = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("model", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    for file in ("tokenizer.json", "tokenizer_config.json", "config.json", "generation_config.json", "chat_template.jinja"):
        shutil.copy(DEMO / file, tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def report() -> str:
    """Return the report of the demo model, which takes half a second."""
    return run(str(DEMO))


@pytest.mark.parametrize(
    "line",
    [
        "family            Hermes calls",
        "chosen by         chat template: <tool_call> <think>",
        "reasoning parser  qwen3",
        "tool parser       hermes",
        "calls read        yes: the form of the template is read back",
        "reasoning read    yes: the form of the template is read back",
        "system messages   yes",
        "tools             yes",
        "parallel calls    yes",
        "images            yes",
        "thinking          switched by enable_thinking",
        "no place for      nothing: all inputs are rendered",
        '    {"name": "get_weather", "arguments": {"city": "Oslo"}}',
        "    Sunny, 7 °C",
    ],
)
def test_the_report_of_the_demo_model_has_the_line(report: str, line: str) -> None:
    assert line in report.splitlines()


def test_inputs_without_a_place_are_in_the_report_in_the_form_that_is_added(checkpoint: Path) -> None:
    (checkpoint / "plain.jinja").write_text(PLAIN)
    (checkpoint / "config.json").write_text(json.dumps({"model_type": "llama"}))
    report = run(str(checkpoint), "--chat-template", str(checkpoint / "plain.jinja")).splitlines()
    added = [line.removeprefix("added             ") for line in report if line.startswith("added")]
    assert added == [
        "tools: described in the system message",
        "calls of earlier turns: as text",
        "reasoning before a call: as text between the markers of reasoning",
    ]
    assert '    {"name": "get_weather", "arguments": {"city": "Oslo"}}' in report


def test_named_parsers_are_in_the_report(checkpoint: Path) -> None:
    report = run(str(checkpoint), "--tool-parser", "seed_oss")
    assert "chosen by         setting and chat template: tool_parser=seed_oss <tool_call> <think>" in report
    assert "tool parser       seed_oss" in report


def test_calls_in_a_new_form_are_read_as_the_template_writes_them(checkpoint: Path) -> None:
    template = (DEMO / "chat_template.jinja").read_text()
    assert "<tool_call>" in template
    (checkpoint / "chat_template.jinja").write_text(template.replace("tool_call>", "tool_use>"))
    report = run(str(checkpoint))
    assert "tool parser       template" in report
    assert "calls read        yes: the form of the template is read back" in report
    assert "warning" not in report


def test_calls_that_are_not_read_are_a_warning(checkpoint: Path) -> None:
    template = (DEMO / "chat_template.jinja").read_text()
    call, end = """'<tool_call>\\n{"name": "' + f.name + '", "arguments": '""", """'}\\n</tool_call>'"""
    assert call in template
    # The name behind the arguments.
    (checkpoint / "chat_template.jinja").write_text(template.replace(call, "'<act>'").replace(end, "f.name + '</act>'"))
    report = run(str(checkpoint))
    assert "calls read        no: shown as text" in report
    assert (
        "warning           The chat template writes calls in a form that no known tool parser reads: calls of this model"
        in report
    )


def test_an_unknown_family_is_a_warning_and_its_template_is_reported(checkpoint: Path) -> None:
    (checkpoint / "chat_template.jinja").write_text(PLAIN)
    (checkpoint / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": {}, "eos_token": "<|im_end|>"}))
    (checkpoint / "config.json").write_text(json.dumps({"model_type": "llama"}))
    report = run(str(checkpoint))
    assert "family            unknown" in report
    assert "warning           The family of the model is not recognised (model_type 'llama')" in report
    assert "no place for      tools, calls of earlier turns, several calls of a turn, text beside a call, reasoning" in report
    assert "    <|im_start|>user\n    What is the weather in Oslo?<|im_end|>" in report


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda folder: shutil.rmtree(folder), "there is no folder"),
        (lambda folder: (folder / "config.json").unlink(), r"holds no config\.json"),
        (lambda folder: (folder / "config.json").write_text("{"), "cannot be opened: Expecting property name"),
        (lambda folder: (folder / "chat_template.jinja").unlink(), "cannot be opened: .* has no chat template"),
        (
            lambda folder: (folder / "chat_template.jinja").write_text("{% if %}"),
            "cannot be read, line 1: Expected an expression",
        ),
    ],
    ids=["no_folder", "no_config", "invalid_config", "no_template", "invalid_template"],
)
def test_a_checkpoint_that_cannot_be_opened_is_refused_in_a_sentence(checkpoint: Path, spoil: object, reason: str) -> None:
    assert callable(spoil)
    spoil(checkpoint)
    with pytest.raises(CommandError, match=reason):
        run(str(checkpoint))


def test_the_command_needs_neither_database_nor_vllm_and_exits_1_on_errors(checkpoint: Path, tmp_path: Path) -> None:
    environ = {
        **os.environ,
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
        "RESPONSES_DATA_DIR": str(tmp_path / "data"),
    }
    command = [sys.executable, "-X", "importtime", str(ROOT / "manage.py"), "model"]
    done, failed = (
        subprocess.run([*command, str(folder)], env=environ, capture_output=True, text=True, check=False)
        for folder in (checkpoint, tmp_path / "nowhere")
    )
    assert done.returncode == 0, done.stderr
    assert "family            Hermes calls" in done.stdout
    assert not [line for line in done.stderr.splitlines() if line.endswith("| vllm") or not line.startswith("import time:")]
    assert failed.returncode == 1
    printed = [line for line in failed.stderr.splitlines() if not line.startswith("import time:")]
    assert printed[-1] == f"CommandError: there is no folder {tmp_path / 'nowhere'}."
