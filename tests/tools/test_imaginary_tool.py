"""An imaginary server tool, added to a copy of the server by the steps of docs/contributing/add-a-server-tool.md."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.conf import settings

ROOT: Final = Path(__file__).parents[2]
SLICE: Final = ROOT / "tests/support/weather_tool"
COPIED: Final = ("responses_app", "project", "templates", "tests/support")
FILES: Final = ("manage.py", "pyproject.toml", "tests/__init__.py", "tests/conftest.py")
# File -> what the steps add: the text before a new text, and the new text.
ADDED: Final[dict[str, list[tuple[str, str]]]] = {
    "responses_app/protocol/items/registry.py": [
        ("import WEB_SEARCH_CALL\n", "from tests.support.weather_tool.family import WEATHER_CALL\n"),
        ("        FILE_SEARCH_CALL,\n", "        WEATHER_CALL,\n"),
    ],
    "responses_app/tools/registry.py": [
        ("import WEB_SEARCH\n", "from tests.support.weather_tool.declaration import WEATHER\n"),
        ("(CODE_INTERPRETER, WEB_SEARCH, FILE_SEARCH", ", WEATHER"),
    ],
    "responses_app/web/render/tool_fields.py": [
        (
            '"code_interpreter_call": _code',
            ', "weather_call": lambda item: iter([text_part(item["place"]), text_part(str(item["degrees"]))])',
        ),
    ],
}
LIMIT_S: Final = 240


def copy_server(folder: Path) -> None:
    """Copy what a server and the helpers of its tests need."""
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, folder / name)


def add_tool(folder: Path) -> None:
    """Add the lines of the steps to the copied server."""
    for name, additions in ADDED.items():
        source = (folder / name).read_text()
        for before, new in additions:
            assert source.count(before) == 1, (name, before)
            source = source.replace(before, before + new)
        (folder / name).write_text(source)


def database_url() -> str:
    """Return the URL of another database, so that the test database is not that of this process."""
    url = urlsplit(os.environ.get("DATABASE_URL", "")) if "DATABASE_URL" in os.environ else None
    assert url is not None, "run bin/test, which starts a database"
    return urlunsplit(url._replace(path=f"/weather_{settings.DATABASES['default']['NAME']}"))


def test_steps_of_the_page_name_the_files_of_the_tool() -> None:
    page = (ROOT / "docs/contributing/add-a-server-tool.md").read_text()
    steps = set(re.findall(r"`(responses_app/[\w/<>.]+\.py)`", page.partition("## Rules of an executor")[0]))
    assert set(ADDED) <= steps
    parts = {f"responses_app/tools/<name>/{path.name}" for path in SLICE.glob("*.py")}
    others = {f"responses_app/tools/<name>/{name}.py" for name in ("__init__", "family", "item_spec", "request_case")}
    optional = {"responses_app/tools/<name>/setting.py"}
    assert {step for step in steps if "<name>" in step} - optional == parts - others


@pytest.mark.slow
def test_server_with_the_tool_runs_a_request_to_its_end(tmp_path: Path) -> None:
    copy_server(tmp_path)
    add_tool(tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/support/weather_tool/request_case.py"]
    ended = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "DATABASE_URL": database_url(), "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-8000:] + ended.stderr[-2000:]
    assert "4 passed" in ended.stdout
