"""Lines of the documentation: prose has at most 120 characters, outside of tables, code, headings and URLs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
MAX_LINE: Final = 120
NAMES: Final = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
UNWRAPPED: Final = {"CHANGELOG.md"}


def long_lines(text: str) -> Iterator[str]:
    """Yield lines of prose that are too long and have a space at which they could end."""
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        is_prose = not in_code and not line.startswith(("|", "    ", "#", "<"))
        if is_prose and len(line) > MAX_LINE and " " in line[:MAX_LINE].strip():
            yield f"{number}: {line[:60]}"


@pytest.mark.parametrize("name", sorted({*NAMES} - UNWRAPPED))
def test_lines_of_prose_are_short(name: str) -> None:
    assert not list(long_lines((ROOT / name).read_text()))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("word " * 30, 1),
        ("* " + "word " * 30, 1),
        ("| " + "word " * 30, 0),
        ("```\n" + "word " * 30 + "\n```", 0),
        ("    " + "word " * 30, 0),
        ("https://example.com/" + "x" * 120, 0),
    ],
)
def test_only_prose_counts_as_long(text: str, count: int) -> None:
    assert len(list(long_lines(text))) == count
