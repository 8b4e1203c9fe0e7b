"""The README's first lines do what they say, word for word."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from tests.support.contract_server import ROOT, Address

pytestmark = pytest.mark.engine
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture
def folder(server: Address, tmp_path: Path) -> Path:
    """A folder with the key where the README expects it."""
    (tmp_path / ".data").mkdir()
    (tmp_path / ".data" / "api_key").write_text(server.key + "\n")
    return tmp_path


def test_the_first_lines_are_the_two_commands() -> None:
    lines = [line.split("#")[0].strip() for line in README.splitlines() if line.startswith("    ")]
    assert lines[:2] == ["bin/serve", "bin/test"]


def test_the_python_example_prints_what_is_shown(server: Address, folder: Path) -> None:
    code = blocks("python")[0].replace("127.0.0.1:8000", f"127.0.0.1:{server.port}")
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == blocks("text")[0].strip()


def is_excerpt(shown: object, answer: object) -> bool:
    """Return True if `answer` has all that is shown. `…` ends a shown string of which the beginning counts."""
    if isinstance(shown, dict):
        return isinstance(answer, dict) and all(name in answer and is_excerpt(shown[name], answer[name]) for name in shown)
    if isinstance(shown, list):
        return isinstance(answer, list) and len(shown) == len(answer) and all(map(is_excerpt, shown, answer))
    if isinstance(shown, str) and shown.endswith("…"):
        return isinstance(answer, str) and answer.startswith(shown[:-1])
    return shown == answer


def test_the_curl_example_gets_the_answer_that_is_shown(server: Address, folder: Path) -> None:
    command = blocks("bash")[0].replace("127.0.0.1:8000", f"127.0.0.1:{server.port}")
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert is_excerpt(orjson.loads(blocks("json")[0]), orjson.loads(done.stdout)), done.stdout.decode()
