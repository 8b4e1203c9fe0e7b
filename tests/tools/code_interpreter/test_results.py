"""Results of code: the item, and the text for the model."""

from __future__ import annotations

import pytest

from responses_app.sandbox.base import RunResult
from responses_app.tools.code_interpreter.results import NO_OUTPUT, code_result, raised_error
from responses_app.tools.limits import ToolLimits

LIMITS = ToolLimits(result_bytes=4000, result_prompt_bytes=1000)


def test_logs_value_and_error_are_joined_in_the_order_of_a_notebook() -> None:
    result = code_result(RunResult(logs="1\n", value="2", error="Boom"), ["Restarted."], LIMITS)
    assert result.outputs == [{"type": "logs", "logs": "1\n2\nBoom"}]
    assert result.model_text == "Restarted.\n1\n2\nBoom"


def test_code_without_output_says_so_to_the_model() -> None:
    result = code_result(RunResult(), [], LIMITS)
    assert (result.outputs, result.model_text) == ([], NO_OUTPUT)


@pytest.mark.parametrize("logs", ["x" * 50_000, "ä" * 50_000])
def test_error_behind_a_long_output_is_not_cut(logs: str) -> None:
    result = code_result(RunResult(logs=logs, error="Boom", is_truncated=True), [], LIMITS)
    assert result.model_text is not None
    assert result.outputs is not None
    for text, limit in ((result.model_text, 1000), (result.outputs[0]["logs"], 4000)):
        assert text.endswith("[More output was dropped.]\nBoom")
        assert "more characters were cut" in text
        assert limit * 0.8 < len(text.encode()) <= limit


def test_pictures_beyond_the_limit_are_left_out_of_the_item() -> None:
    result = code_result(RunResult(figures=(b"x" * 1500, b"y" * 3000)), [], LIMITS)
    assert result.outputs is not None
    assert [output["type"] for output in result.outputs] == ["image", "logs"]
    assert len(result.model_images) == 2


TRACEBACK = 'Traceback (most recent call last):\n  File "<cell 1>", line 2, in <module>\n'


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (f"before\n{TRACEBACK}NameError: name 'x' is not defined", "NameError"),
        (f"{TRACEBACK}NameError: x\nFiles written: /mnt/data/a.csv (3 bytes)", "NameError"),
        (f"{TRACEBACK}KeyError: 1\n\nDuring handling:\n\n{TRACEBACK}package.errors.ValidationError: a\n  b", "ValidationError"),
        (f"{TRACEBACK}KeyboardInterrupt\n", "KeyboardInterrupt"),
        # A program that printed a traceback and went on.
        (f"{TRACEBACK}NameError: x\nAll is well.", ""),
        ("NameError: printed", ""),
        ("", ""),
    ],
)
def test_name_of_the_exception_is_read_from_the_end_of_the_text(text: str, name: str) -> None:
    assert raised_error(text) == name
