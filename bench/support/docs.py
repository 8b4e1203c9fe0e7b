"""Sections of the documentation that benchmarks write: the lines between two markers."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

MEASURE = Path(__file__).resolve().parents[2] / "docs" / "operations" / "measure.md"
MAX_LINE = 120
WRITE_DOCS = "--write-docs"
# Options with a value that change no figure. Their values may be paths of this machine.
OUTPUT_OPTIONS = ("--json", "--plot", "--profile", "--port")


class MissingSection(Exception):
    """A file of the documentation has no markers of this name."""


def replace_section(text: str, name: str, lines: Sequence[str]) -> str:
    """Replace the lines between the markers of the section `name`. Raises MissingSection."""
    begin, end = (f"<!-- {name}: {edge} -->" for edge in ("begin", "end"))
    before, begin_mark, after_begin = text.partition(begin)
    _, closed, after = after_begin.partition(end)
    if not begin_mark or not closed:
        raise MissingSection(f"{begin} … {end}")
    return "\n".join([before + begin, "", *lines, "", end]) + after


def require_section(name: str, file: Path = MEASURE) -> None:
    """Check before a measurement that the file has the section. Raises MissingSection."""
    replace_section(file.read_text(), name, [])


def write_section(name: str, lines: Sequence[str], file: Path = MEASURE) -> None:
    """Write a section of a file of the documentation. Raises MissingSection."""
    file.write_text(replace_section(file.read_text(), name, lines))


def conditions(rounds: int, load_before: float, arguments: Sequence[str] = sys.argv[1:], today: date | None = None) -> str:
    """Describe date, machine, rounds and command of a measurement; `load_before` is the load of the machine before the start."""
    command = " ".join(["python -m", _program(), *_measuring(arguments)])
    day = today or datetime.now(UTC).date()
    sentence = (
        f"Measured on {day.day} {day:%B %Y} on {os.cpu_count()} cores that also ran the client, at a load of {load_before:.1f} "
        f"before the start; medians of {rounds} {'rounds' if rounds > 1 else 'round'} (`{command}`):"
    )
    return textwrap.fill(sentence, MAX_LINE, break_long_words=False, break_on_hyphens=False)


def _measuring(arguments: Sequence[str]) -> list[str]:
    """Leave out the options that say where the results go."""
    pairs = zip(["", *arguments], arguments, strict=False)
    dropped = (*OUTPUT_OPTIONS, WRITE_DOCS)
    return [word for before, word in pairs if word not in dropped and before not in OUTPUT_OPTIONS]


def _program() -> str:
    """Return the module of the running benchmark, as in `bench.compare`."""
    spec = sys.modules["__main__"].__spec__
    return spec.name.removesuffix(".__main__") if spec else "bench"
