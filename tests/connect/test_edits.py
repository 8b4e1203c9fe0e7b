"""Edits of configuration files: other content stays, comments included, and what cannot be edited is refused."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from responses_app.connect.edits import jsonc, toml, yaml_list
from responses_app.connect.edits.errors import CannotEdit
from responses_app.connect.edits.jsonc import Step

JSON_EDITS: dict[str, tuple[str, Sequence[Step], Any, str]] = {
    "empty file": ("", ["a", "b"], 1, '{\n  "a": {\n    "b": 1\n  }\n}\n'),
    "file of comments": ("// mine\n", ["a"], 1, '// mine\n{\n  "a": 1\n}\n'),
    "empty object": ("{}", ["a"], 1, '{\n  "a": 1\n}'),
    "new key": ('{\n  "x": 1\n}\n', ["a"], 2, '{\n  "x": 1,\n  "a": 2\n}\n'),
    "old key": ('{"a": [1, 2], "x": 1}', ["a"], 2, '{"a": 2, "x": 1}'),
    "inner key": ('{\n  "a": {"x": 1}\n}', ["a", "b"], 2, '{\n  "a": {"x": 1,\n    "b": 2}\n}'),
    "comments": (
        '{\n  // one\n  "x": 1 // two\n  /* three */\n}',
        ["a"],
        2,
        '{\n  // one\n  "x": 1, // two\n  "a": 2\n  /* three */\n}',
    ),
    "trailing comma": ('{\n  "x": 1,\n}', ["a"], 2, '{\n  "x": 1,\n  "a": 2\n}'),
    "marks in strings": ('{"x": "// no, }"}', ["a"], 2, '{"x": "// no, }",\n  "a": 2}'),
    "entry of an array": ('[{"name": "x"}]', [{"name": "a"}], {"name": "a"}, '[{"name": "x"},\n  {\n    "name": "a"\n  }]'),
    "tabs": (
        '{\n\t"x": {\n\t\t"y": 1\n\t}\n}\n',
        ["x", "a"],
        {"b": 1},
        '{\n\t"x": {\n\t\t"y": 1,\n\t\t"a": {\n\t\t\t"b": 1\n\t\t}\n\t}\n}\n',
    ),
    "tabs of an old key": ('// a\n{\n\t"x": 1\n}\n', ["x"], {"b": 1}, '// a\n{\n\t"x": {\n\t\t"b": 1\n\t}\n}\n'),
    "four blanks": (
        '{\n    /* x\n     * y */\n    "x": {}\n}',
        ["x", "a"],
        1,
        '{\n    /* x\n     * y */\n    "x": {\n        "a": 1\n    }\n}',
    ),
    "old entry": ('[{"name": "a", "b": 1}]', [{"name": "a"}], {"name": "a"}, '[{\n    "name": "a"\n  }]'),
}
NO_JSON = ["{", '{"a" 1}', '{"a": }', "{} {}", '{"a": 1 "b": 2}', "[1", '{"a": tru}', '{"x": "', "[]", '{"a": 1}']
VALUES = {"model": "m", "model_provider": "verbatim"}
TABLES: dict[str, dict[str, Any]] = {"p.v": {"url": "u", "on": True}, "p.v.auth": {"args": ["a"]}}
NEW_TABLES = '[p.v]\nurl = "u"\non = true\n\n[p.v.auth]\nargs = ["a"]\n'
TOML_EDITS = {
    "": f'model = "m"\nmodel_provider = "verbatim"\n\n{NEW_TABLES}',
    '# mine\nmodel = "x" # old\nother = 1\n\n[t]\nmodel = "inner"\n': (
        f'model_provider = "verbatim"\n\n# mine\nmodel = "m" # old\nother = 1\n\n[t]\nmodel = "inner"\n\n{NEW_TABLES}'
    ),
    'model = "m"\nmodel_provider = "verbatim"\n\n[p.v]\nold = 1\n[p.v.auth]\nx = 1\n[p.w]\ny = 2\n': (
        f'model = "m"\nmodel_provider = "verbatim"\n\n[p.w]\ny = 2\n\n{NEW_TABLES}'
    ),
}
TOML_COMMENTS = {
    "model = \"a # b\" # c\nmodel_provider = 'x'# d\n": 'model = "m" # c\nmodel_provider = "verbatim"# d\n\n',
    'model = "a # b"\nmodel_provider = true \t# "d"\n': 'model = "m"\nmodel_provider = "verbatim" \t# "d"\n\n',
    'model = "m"\nmodel_provider = "x"\n[p.v]\n# old\na = 1\n\n# other\n# table\n[p.w]\n\n[p.v.auth]\n\n# last\n': (
        'model = "m"\nmodel_provider = "verbatim"\n\n# other\n# table\n[p.w]\n\n# last\n\n'
    ),
}
NO_TOML = ["model = ", '[p]\nv = "text"\n', 'p = {v = {url = "x"}}\n', 'model = """\na\n"""\n', "p = 1"]


@pytest.mark.parametrize("name", JSON_EDITS)
def test_json_keeps_all_other_content(name: str) -> None:
    text, path, value, expected = JSON_EDITS[name]
    edited = jsonc.set_value(text, path, value)
    assert edited == expected
    assert jsonc.set_value(edited, path, value) == edited


@pytest.mark.parametrize("text", NO_JSON)
def test_json_that_cannot_be_edited_is_refused(text: str) -> None:
    with pytest.raises(CannotEdit):
        jsonc.set_value(text, ["a", "b"], 1)


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.text(max_size=3), _values, max_size=3), st.text(max_size=3), _values)
def test_json_edit_changes_one_key(document: dict[str, Any], key: str, value: Any) -> None:
    edited = jsonc.set_value(jsonc.set_value("", ["k"], document), ["k", key], value)
    assert jsonc.parse(edited) == {"k": {**document, key: value}}


@pytest.mark.parametrize("text", TOML_EDITS)
def test_toml_keeps_all_other_content(text: str) -> None:
    edited = toml.set_values(text, VALUES, "p.v", TABLES)
    assert edited == TOML_EDITS[text]
    assert tomllib.loads(edited)["p"]["v"] == {"url": "u", "on": True, "auth": {"args": ["a"]}}
    assert toml.set_values(edited, VALUES, "p.v", TABLES) == edited


@pytest.mark.parametrize("text", TOML_COMMENTS)
def test_toml_keeps_comments_behind_values_and_before_other_tables(text: str) -> None:
    assert toml.set_values(text, VALUES, "p.v", TABLES) == TOML_COMMENTS[text] + NEW_TABLES


@pytest.mark.parametrize("text", NO_TOML)
def test_toml_that_cannot_be_edited_is_refused(text: str) -> None:
    with pytest.raises(CannotEdit):
        toml.set_values(text, VALUES, "p.v", TABLES)


def test_toml_with_an_inline_table_is_not_called_broken() -> None:
    with pytest.raises(CannotEdit, match=r"its form of model, model_provider, p\.v cannot be edited: change the file by hand"):
        toml.set_values("p = {x = {y = 1}}\n", VALUES, "p.v", TABLES)


def test_yaml_keeps_other_entries() -> None:
    entry = {"model_id": "a", "vision": True}
    text = "# mine\n- model_id: x\n  api_base: y # z\n"
    edited = yaml_list.set_entry(text, "model_id", entry)
    assert edited == text + '- model_id: "a"\n  vision: true\n'
    assert yaml_list.set_entry(edited, "model_id", entry) == edited
    assert (
        yaml_list.set_entry(edited, "model_id", {"model_id": "x"})
        == '# mine\n- model_id: "a"\n  vision: true\n- model_id: "x"\n'
    )
    assert yaml.safe_load(yaml_list.set_entry("", "model_id", entry)) == [entry]


def test_yaml_keeps_the_comment_of_the_entry_behind() -> None:
    text = "- model_id: a\n  # inner\n  x: 1\n\n# of b\n- model_id: b\n"
    assert yaml_list.set_entry(text, "model_id", {"model_id": "a"}) == '# of b\n- model_id: b\n- model_id: "a"\n'


@pytest.mark.parametrize("text", ["a: 1", "- 1", "[", "[{model_id: x}]"])
def test_yaml_that_cannot_be_edited_is_refused(text: str) -> None:
    with pytest.raises(CannotEdit):
        yaml_list.set_entry(text, "model_id", {"model_id": "a"})


YAML_BELOW = {
    "": "m:\n  - n: a\n",
    "x: 1": "x: 1\nm:\n  - n: a\n",
    "m:\n": "m:\n  - n: a\n",
    "m: # mine\n- n: x # y\n": "m: # mine\n- n: x # y\n- n: a\n",
    "# 1\nm:\n    # 2\n    - n: x\n      t: |\n        - z\n\n        # no\n\n# of z\nz:\n- 1\n": (
        "# 1\nm:\n    # 2\n    - n: x\n      t: |\n        - z\n\n        # no\n    - n: a\n\n# of z\nz:\n- 1\n"
    ),
    "m:\n  - n: a\n    old: 1\n  - n: b\nz: 1\n": "m:\n  - n: b\n  - n: a\nz: 1\n",
}


@pytest.mark.parametrize("text", YAML_BELOW)
def test_yaml_below_a_key_keeps_all_other_content(text: str) -> None:
    edited = yaml_list.set_entry_below(text, "m", "n", {"n": "a"})
    assert edited.replace('"', "") == YAML_BELOW[text]
    assert yaml_list.set_entry_below(edited, "m", "n", {"n": "a"}) == edited


@pytest.mark.parametrize(
    "text", ["- 1", "m: [{n: x}]", "m: {n: x}", "m:\n- 1\n", "m:\n  n: x\n", "m: &a\n- n: x\nb: *a\n", "["]
)
def test_yaml_below_a_key_that_cannot_be_edited_is_refused(text: str) -> None:
    with pytest.raises(CannotEdit):
        yaml_list.set_entry_below(text, "m", "n", {"n": "a"})
