"""The wheel of this checkout, and a virtual environment in which it is installed."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support.server import closed_folders

UV = str(Path(sys.prefix) / "bin" / "uv")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built through the source distribution with the installed build backend."""
    checkout = closed_folders.checkout(tmp_path_factory.mktemp("wheel") / "checkout")
    command = [UV, "build", "--offline", "--no-build-isolation", "--python", sys.executable, "--out-dir", "dist"]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return next((checkout / "dist").glob("*.whl"))


@pytest.fixture(scope="session")
def environment(wheel: Path) -> Path:
    """A virtual environment with the wheel; the dependencies come from the environment of the tests."""
    folder = wheel.parent / "venv"
    subprocess.run([UV, "venv", "--quiet", "--offline", "--python", sys.executable, folder], check=True)
    command = [UV, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", str(folder), str(wheel)]
    subprocess.run(command, check=True)
    dependencies = next(folder.glob("lib/python*/site-packages")) / "dependencies.pth"
    dependencies.write_text(f"{sysconfig.get_path('purelib')}\n")
    return folder
