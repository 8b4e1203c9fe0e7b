"""Packages of the containers: installation, pictures of matplotlib and Pillow, tables of pandas."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

import pytest

from responses_app.outbound_http.package_indexes import UV_SETTINGS
from responses_app.sandbox.launch import packages
from responses_app.sandbox.options import RunnerOptions
from tests.support.sandbox.runner import PACKAGES, Runner, runner

pytestmark = pytest.mark.slow
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def scientific(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    try:
        packages.install(PACKAGES)
    except packages.PackagesMissing as error:
        pytest.skip(f"no package index: {error}")
    with runner(tmp_path_factory.mktemp("scientific"), RunnerOptions(run_timeout_s=240), with_packages=True) as started:
        yield started


@pytest.mark.parametrize(
    ("code", "value", "figures"),
    [
        ("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()", None, 1),
        ("import matplotlib.pyplot as plt\nplt.plot([1, 2]); None", None, 1),
        ("import matplotlib.pyplot as plt\nplt.figure(); plt.figure(); plt.savefig('/mnt/data/a.png')", None, 2),
        ("import matplotlib.pyplot as plt\nplt.plot([1]); plt.close('all')", None, 0),
        ("import PIL.Image\nPIL.Image.new('RGB', (3, 3)).size", "(3, 3)", 0),
        ("import PIL.Image\nimage = PIL.Image.new('RGB', (3, 3))\nimage\n", "<PIL.Image.Image image mode=RGB size=3x3 at", 1),
        ("import pandas\npandas.DataFrame({'a': [1, 2]}).sum()", "a    3\ndtype: int64", 0),
        ("import numpy\nnumpy.ones((500, 500)).dot(numpy.ones((500, 500))).sum()", "125000000.0", 0),
    ],
)
def test_figures_and_tables_are_shown(scientific: Runner, code: str, value: str | None, figures: int) -> None:
    (result,) = scientific.run("scientific", code)
    assert result.error is None
    assert value is None or value in str(result.value)
    assert [image[:8] for image in result.figures] == [PNG] * figures


def test_failed_installation_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As after a test that imports setuptools, whose finder warns if distutils is there when pip is looked for.
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    pytest.importorskip("_distutils_hack", reason="setuptools is not installed").add_shim()
    monkeypatch.setitem(sys.modules, "distutils", ModuleType("distutils"))
    monkeypatch.setattr(packages, "REQUIREMENTS", ("verbatim-no-such-package==1",))
    with pytest.raises(packages.PackagesMissing, match="verbatim-no-such-package"):
        packages.install(tmp_path)
    assert not packages.is_installed(tmp_path)


def test_files_of_a_killed_installation_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "REQUIREMENTS", ("verbatim-no-such-package==1",))
    target = packages.prepared_folder(tmp_path)
    for name in ("fresh", "temporary"):
        (target / name / "pip-unpack-x").mkdir(parents=True)
    with pytest.raises(packages.PackagesMissing):
        packages.install(tmp_path)
    assert [path.name for path in target.iterdir()] == ["shared"]


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_packages_are_readable_and_writable_by_their_owner_alone(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        packages._run([sys.executable, "-c", f"import os; os.makedirs({str(tmp_path / 'numpy')!r})"], dict(os.environ))
    finally:
        os.umask(before)
    assert (tmp_path / "numpy").stat().st_mode & 0o777 == 0o755


def test_uv_asks_the_package_index_of_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = PathFinder.find_spec
    monkeypatch.setattr(PathFinder, "find_spec", lambda name, *path: None if name == "pip" else find(name, *path))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    for variable in UV_SETTINGS:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(packages, "REQUIREMENTS", ("verbatim-no-such-package==1",))
    with pytest.raises(packages.PackagesMissing, match="the package index cannot be reached"):
        packages.install(tmp_path)


def test_missing_installer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = PathFinder.find_spec
    monkeypatch.setattr(PathFinder, "find_spec", lambda name, *path: None if name == "pip" else find(name, *path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(packages.PackagesMissing, match="neither pip nor uv is installed"):
        packages.install(tmp_path / "sandbox")
