"""Edits of a YAML file that is a list of objects."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import yaml

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
        for number in range(start, end)
    }
    without_entry = "".join(line for number, line in enumerate(lines) if number not in removed)
    edited = f"{without_entry.rstrip()}\n" if without_entry.strip() else ""
    members = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in entry.items()]
    edited += "- " + "\n  ".join(members) + "\n"
    if _parse(edited) != [*kept_entries, dict(entry)]:
        raise CannotEdit("its form cannot be edited: change the file by hand")
    return edited


def _parse(text: str) -> list[dict[str, Any]]:
    try:
        entries = yaml.safe_load(text) or []
    except yaml.YAMLError as error:
        raise CannotEdit(f"no YAML: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        raise CannotEdit("no list of objects")
    return entries
