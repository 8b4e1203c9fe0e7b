"""Vendored modules: manifest.json has the version, project, licence and SHA-256 of each file, and pages load each on first use."""

from __future__ import annotations

import json
import re
from hashlib import sha256

import pytest

from responses_app.installation.data_dir import ROOT

STATIC = ROOT / "responses_app" / "static" / "web"
VENDOR = STATIC / "vendor"
MODULES = json.loads((VENDOR / "manifest.json").read_text())["modules"]
LARGEST = 170_000


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module["file"])
def test_the_file_is_the_one_of_the_manifest(module: dict[str, str]) -> None:
    content = (VENDOR / module["file"]).read_bytes()
    assert sha256(content).hexdigest() == module["sha256"]
    assert len(content) < LARGEST
    assert module["version"][0].isdigit()
    assert module["project"].startswith("https://")
    assert f"\n{module['package']}\n=" in "\n" + (VENDOR / "LICENSES.txt").read_text()


def test_every_module_is_in_the_manifest() -> None:
    assert {path.name for path in VENDOR.glob("*.js")} == {module["file"] for module in MODULES}


def test_every_import_of_a_script_names_a_file() -> None:
    scripts = [path for path in STATIC.rglob("*.js") if VENDOR not in path.parents]
    imports = [
        (path, name) for path in scripts for name in re.findall(r'(?:from |import |import\()"(\.[^"]+)"', path.read_text())
    ]
    assert len(imports) > len(scripts) / 2
    assert not [(path.name, name) for path, name in imports if not (path.parent / name).is_file()]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module["file"])
def test_no_page_loads_a_module_with_itself(module: dict[str, str]) -> None:
    name = f"vendor/{module['file']}"
    assert not [path.name for path in (ROOT / "templates").rglob("*.html") if name in path.read_text()]
