"""Messages and pages name the commands of a checkout or of the wheel, as the server was installed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.template.loader import render_to_string

from responses_app.installation import data_dir

ROOT = Path(__file__).resolve().parents[2]
CHECKOUT = re.compile(r"manage\.py|\bbin/serve\b")
# Modules that choose between the two, or speak of a checkout alone.
CHOOSING = {
    "responses_app/installation/data_dir.py",
    "responses_app/management/commands/doctor.py",
    "responses_app/server/bootstrap/installed.py",
    "responses_app/server/cli/args.py",
    "responses_app/server/cli/banner.py",
}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def strings(source: str) -> Iterator[str]:
    """Yield the strings of a module that are no docstrings."""
    tree = ast.parse(source)
    docstrings = {id(expression.value) for node in ast.walk(tree) for expression in docstring(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def docstring(node: ast.AST) -> list[ast.Expr]:
    """Return the statement of the docstring, if `node` has one."""
    first = node.body[0] if isinstance(node, DOCUMENTED) and node.body else None
    return [first] if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) else []


def test_no_message_names_a_command_of_a_checkout() -> None:
    modules = {str(path.relative_to(ROOT)): path for path in (ROOT / "responses_app").rglob("*.py")}
    assert modules.keys() >= CHOOSING
    named = [
        f"{name}: {string!r}"
        for name, path in modules.items()
        if name not in CHOOSING
        for string in strings(path.read_text())
        if CHECKOUT.search(string)
    ]
    assert not named, "write {MANAGE} or {SERVE} of installation/data_dir.py:\n" + "\n".join(named)


def test_no_page_names_a_command_of_a_checkout() -> None:
    pages = [path for path in (ROOT / "templates").rglob("*.html") if CHECKOUT.search(path.read_text())]
    assert not pages, "write {% serve %}, {% manage %} or {% program %} of templatetags/commands.py"


def test_a_page_names_the_commands_of_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, command in {"SERVE": "verbatim serve", "MANAGE": "verbatim", "PROGRAM": "verbatim"}.items():
        monkeypatch.setattr(data_dir, name, command)
    assert "run <code>verbatim doctor</code>" in render_to_string("503.html")
    assert "<code>verbatim serve --demo-tools</code>" in render_to_string("web/mcp_servers.html", {"servers": []})
    sign_in = render_to_string("web/sign_in.html", {"local": True, "form": None})
    assert "<code>verbatim serve</code> prints" in sign_in
    assert "<code>verbatim signin</code>" in sign_in
