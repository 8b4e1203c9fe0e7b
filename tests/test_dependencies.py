"""Dependencies: pyproject.toml declares what the code imports, uv.lock locks it, and the requirement files are exports of uv.lock."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from responses_app.installation.data_dir import ROOT

OWN = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or (path.is_dir() and any(path.glob("*.py")))}
# Programs with clients, which run in an environment of their own, from its own requirement file.
CLIENTS = ROOT / "tests" / "clients"
DRIVERS = ROOT / "bench" / "client_matrix" / "drivers" / "python"
FOREIGN = (CLIENTS / "python", CLIENTS / "python_formats", CLIENTS / "older", DRIVERS)
LOCKED = ("pyproject.toml", "uv.lock", "requirements.txt", "requirements-uv.txt", "bin/lock")


@pytest.fixture(scope="module")
def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def python_files() -> Iterator[Path]:
    """List the Python files of the repository that run in its own environment."""
    for folder in (ROOT / name for name in sorted(OWN)):
        for path in sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]:
            if path.parent not in FOREIGN:
                yield path


def imported(path: Path) -> Iterator[str]:
    """List the top-level modules that a file imports, wherever the import stands."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(project: dict[str, object]) -> set[str]:
    """List the distributions that pyproject.toml names, with the extras, the groups and the build backend."""
    table, groups = project["project"], project["dependency-groups"]
    assert isinstance(table, dict)
    assert isinstance(groups, dict)
    lines = [*table["dependencies"], *(line for lines in table["optional-dependencies"].values() for line in lines)]
    lines += project["build-system"]["requires"]  # type: ignore[index]
    lines += [line for lines in groups.values() for line in lines if isinstance(line, str)]
    names = set()
    for line in lines:
        match = re.match(r"([\w.-]+)(?:\[([\w,-]+)\])?", line)
        assert match, line
        names.add(normalized(match[1]))
        # psycopg[pool] is a declaration of psycopg-pool, as psycopg documents it.
        names |= {normalized(f"{match[1]}-{extra}") for extra in (match[2] or "").split(",") if extra}
    return names


def test_prompts_for_an_engine_elsewhere_need_no_extra(project: dict[str, object]) -> None:
    table = project["project"]
    assert isinstance(table, dict)
    without_extra = {normalized(re.split(r"[\[=<>]", line)[0]) for line in table["dependencies"]}
    distributions = packages_distributions()
    # vLLM renders the prompts of some models itself.
    extra = {
        module
        for path in (ROOT / "responses_app" / "dialects").rglob("*.py")
        for module in imported(path)
        if module not in sys.stdlib_module_names and module not in OWN | {"vllm"}
        if not without_extra & {normalized(name) for name in distributions.get(module, [module])}
    }
    assert not extra


@pytest.mark.slow
def test_every_imported_distribution_is_declared(project: dict[str, object]) -> None:
    names, distributions = declared(project), packages_distributions()
    missing = {
        f"{path.relative_to(ROOT)} imports {module}, of {distributions.get(module)}"
        for path in python_files()
        for module in imported(path)
        if module not in sys.stdlib_module_names and module not in OWN
        if not names & {normalized(name) for name in distributions.get(module, [module])}
    }
    assert not missing, "\n".join(sorted(missing))


def test_the_lock_and_its_exports_are_up_to_date(tmp_path: Path) -> None:
    """bin/lock changes nothing, without the network and without a cache."""
    for name in LOCKED:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    path = f"{Path(sys.prefix) / 'bin'}:{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "UV_CACHE_DIR": str(tmp_path / "cache"), "UV_PYTHON": sys.executable}
    subprocess.run([tmp_path / "bin" / "lock", "--offline"], env=environ, check=True)
    stale = [name for name in LOCKED if (tmp_path / name).read_text() != (ROOT / name).read_text()]
    assert stale == [], "run bin/lock"


def test_the_lock_names_public_registries_alone() -> None:
    text = (ROOT / "uv.lock").read_text()
    assert set(re.findall(r'registry = "([^"]+)"', text)) == {"https://pypi.org/simple", "https://download.pytorch.org/whl/cpu"}
    assert set(re.findall(r'url = "https?://([^/"]+)', text)) == {"files.pythonhosted.org", "download.pytorch.org"}
    assert set(re.findall(r"https?://([^/\s]+)", (ROOT / "requirements.txt").read_text())) == set()


def test_every_locked_file_has_a_hash() -> None:
    packages = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    files = [file for package in packages for file in [*package.get("wheels", []), *filter(None, [package.get("sdist")])]]
    assert files
    assert [file["url"] for file in files if not file.get("hash", "").startswith("sha256:")] == []


@pytest.mark.parametrize("name", ["django", "channels", "daphne", "vllm", "oss-harmony", "openai", "psycopg", "pytest-django"])
def test_requirements_txt_names_the_packages_that_the_project_stands_on(name: str) -> None:
    assert re.search(rf"^{name}==", (ROOT / "requirements.txt").read_text(), re.MULTILINE)


@pytest.mark.parametrize(
    ("extra", "torch", "cuda"), [("cpu", "2.13.0+cpu", False), ("cpu-pypi", "2.13.0", True), ("gpu", "2.13.0", True)]
)
def test_each_engine_has_its_build_of_torch(extra: str, torch: str, cuda: bool) -> None:
    command = [
        str(Path(sys.prefix) / "bin" / "uv"),
        "export",
        "--frozen",
        "--offline",
        "--no-hashes",
        "--no-header",
        "--extra",
        extra,
    ]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    names = {line.split(" ")[0] for line in lines}
    assert f"torch=={torch}" in names
    assert any(name.startswith("nvidia-cublas==") for name in names) == cuda
