"""Edits of TOML: values at the top, and whole tables."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any, Final

from responses_app.connect.edits.comments import comments_at_end
from responses_app.connect.edits.errors import CannotEdit

# Value in a line, and the comment behind it.
_COMMENT: Final = re.compile(r"""[ \t]*(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^"'#]*?)([ \t]*#.*)""")
_HEADER: Final = re.compile(r"\s*\[+\s*([^\]]+?)\s*\]")


def set_values(text: str, values: Mapping[str, str], table: str, tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Set top-level strings, and replace the table `table` and all tables inside by `tables`. Raises CannotEdit.

    The result is parsed: it must be the old document with these changes, or the edit is refused.
    """
    before = _parse(text)
    lines = text.splitlines(keepends=True)
    first = next((number for number, line in enumerate(lines) if _HEADER.match(line)), len(lines))
    top, after_top = _with_values("".join(lines[:first]), values), _without_table(lines[first:], table)
    parts = [top.rstrip("\n"), after_top.strip("\n"), *(_table(name, content) for name, content in tables.items())]
    edited = "\n\n".join(part for part in parts if part) + "\n"
    try:
        is_expected = tomllib.loads(edited) == _expected(before, values, table, tables)
    except tomllib.TOMLDecodeError:  # Such as an inline table, which takes no table of the same name.
        is_expected = False
    if not is_expected:
        raise CannotEdit(f"its form of {', '.join([*values, table])} cannot be edited: change the file by hand")
    return edited


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CannotEdit(f"no TOML: {error}") from error


def _with_values(top: str, values: Mapping[str, str]) -> str:
    added: list[str] = []
    for key, value in values.items():
        line = f"{key} = {_dump(value)}"
        old = re.search(rf"^{re.escape(key)}[ \t]*=(.*)$", top, flags=re.MULTILINE)
        if old:
            comment = _COMMENT.fullmatch(old[1])
            top = top[: old.start()] + line + (comment[1] if comment else "") + top[old.end() :]
        else:
            added.append(line + "\n")
    return "".join(added) + ("\n" if added and top.strip() else "") + top


def _without_table(lines: list[str], table: str) -> str:
    kept_lines: list[str] = []
    inside, removed = False, list[str]()
    for line in lines:
        header = _HEADER.match(line)
        if header:
            kept_lines += comments_at_end(removed)
            inside, removed = header[1] == table or header[1].startswith(table + "."), []
        (removed if inside else kept_lines).append(line)
    return "".join([*kept_lines, *comments_at_end(removed)])


def _table(name: str, content: Mapping[str, Any]) -> str:
    return "\n".join([f"[{name}]", *(f"{key} = {_dump(value)}" for key, value in content.items())])


def _dump(value: Any) -> str:
    # Strings, booleans, numbers and lists of these have the same form in JSON and in TOML.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _expected(
    before: dict[str, Any], values: Mapping[str, str], table: str, tables: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    expected = {**before, **values}
    *path, last = table.split(".")
    place = expected
    for key in path:
        inner = place.get(key, {})
        if not isinstance(inner, dict):
            raise CannotEdit(f"{key} is no table")
        place[key] = place = dict(inner)
    place.pop(last, None)
    for name, content in tables.items():
        inner = expected
        for key in name.split("."):
            inner = inner.setdefault(key, {})
        inner.update(content)
    return expected
