"""The diagram of docs/architecture.md is the contract that import-linter enforces."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text()


def test_the_layers_of_the_page_are_those_of_the_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    block = re.search(r"<!-- layers: begin -->\s*```text\n(.*?)```", PAGE, re.S)
    assert block is not None
    assert block[1].splitlines() == contracts[0]["layers"]


def test_every_module_that_the_page_names_exists() -> None:
    package = ROOT / "responses_app"
    named = set(re.findall(r"`([a-z_/]+\.py)`", PAGE))
    assert named
    assert not {name for name in named if not (package / name).exists() and not (ROOT / name).exists()}
