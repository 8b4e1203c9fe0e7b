"""RESPONSES_CONTAINER_STARTUP: code that is read at the start of the server, and errors that name the setting."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from responses_app.tools.code_interpreter.setting import DEMO_STARTUP, MAX_BYTES, NAME, read_startup_code


def test_setting_without_a_path_means_no_code() -> None:
    assert read_startup_code("") == ""


def test_example_defines_a_plot_of_squares() -> None:
    assert "def plot(n: int)" in read_startup_code(DEMO_STARTUP)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file"),
        (b"\xff", "no UTF-8 text"),
        (b"def", r"line 1"),
        (b"x = 1\0", "Python code"),
        (b"#" * (MAX_BYTES + 1), f"at most {MAX_BYTES} bytes"),
    ],
    ids=["missing", "encoding", "syntax", "null", "long"],
)
def test_unusable_file_is_an_error_with_the_reason(tmp_path: Path, content: bytes | None, reason: str) -> None:
    path = tmp_path / "startup.py"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ImproperlyConfigured, match=f"{NAME}.*{reason}"):
        read_startup_code(str(path))
