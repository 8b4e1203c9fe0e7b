"""Edits of a list of objects in a YAML file, which is the whole file or the value of a key."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import yaml

from responses_app.connect.edits.comments import comments_at_end
from responses_app.connect.edits.errors import CannotEdit


def set_entry(text: str, key: str, entry: Mapping[str, Any]) -> str:
    """Replace the entry whose `key` has the value of `entry[key]`, or append `entry`. Raises CannotEdit."""
    entries = _parse(text)
    kept_entries = [one for one in entries if one.get(key) != entry[key]]
    lines = text.splitlines(keepends=True)
    starts = [number for number, line in enumerate(lines) if re.match(r"-\s", line)]
    if len(starts) != len(entries):
        raise CannotEdit("its list is not written with one '- ' at the beginning of a line for each entry")
    spans = pairwise([*starts, len(lines)])
    removed = {
        number
        for (start, end), one in zip(spans, entries, strict=True)
        if one not in kept_entries
        for number in range(start, end - len(comments_at_end(lines[start:end])))
    }
    without_entry = "".join(line for number, line in enumerate(lines) if number not in removed)
    edited = f"{without_entry.rstrip()}\n" if without_entry.strip() else ""
    members = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in entry.items()]
    edited += "- " + "\n  ".join(members) + "\n"
    if _parse(edited) != [*kept_entries, dict(entry)]:
        raise CannotEdit("its form cannot be edited: change the file by hand")
    return edited


def set_entry_below(text: str, place: str, key: str, entry: Mapping[str, Any]) -> str:
    """Set an entry as `set_entry` does, in the list at the key `place` of an object. Raises CannotEdit."""
    before = _load(text) or {}
    if not isinstance(before, dict):
        raise CannotEdit("no object")
    listed = before.get(place) or []
    lines = text.splitlines(keepends=True)
    if place not in before:
        lines = [*_ended(lines), f"{place}:\n"]
    start = next((number for number, line in enumerate(lines, 1) if re.match(rf"{re.escape(place)}:\s*(#.*)?$", line)), None)
    if start is None or not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise CannotEdit(f"{place!r} is not written as a list with one '- ' for each entry")
    end = _end(lines, start)
    block, following = _ended(lines[start:end]), "".join(lines[end:])
    indent = next((line[: line.index("-")] for line in block if line.lstrip().startswith("-")), "  ")
    dedented = "".join(line.removeprefix(indent) for line in block)
    edited = textwrap.indent(set_entry(dedented, key, entry), indent)
    edited = "".join(_ended(lines[:start])) + edited + following
    if _load(edited) != {**before, place: [*(one for one in listed if one.get(key) != entry[key]), dict(entry)]}:
        raise CannotEdit("its form cannot be edited: change the file by hand")
    return edited


def _end(lines: list[str], start: int) -> int:
    """Return the end of the list that begins at `start`: blank lines and comments before the next key do not belong to it."""
    end = next((number for number in range(start, len(lines)) if re.match(r"[^\s#-]", lines[number])), len(lines))
    while end < len(lines) and end > start and re.match(r"#|\s*$", lines[end - 1]):
        end -= 1
    return end


def _ended(lines: list[str]) -> list[str]:
    """Return lines of which the last has an end."""
    return [*lines[:-1], f"{lines[-1].rstrip()}\n"] if lines else []


def _load(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise CannotEdit(f"no YAML: {' '.join(str(error).split())[:200]}") from error


def _parse(text: str) -> list[dict[str, Any]]:
    entries = _load(text) or []
    if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        raise CannotEdit("no list of objects")
    return entries
