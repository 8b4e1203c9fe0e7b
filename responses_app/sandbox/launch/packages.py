"""Packages for the code in containers, installed with pip in a folder of their own at the first start."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

REQUIREMENTS = ("numpy==2.4.6", "pandas==3.1.1", "matplotlib==3.11.2", "pillow==13.0.0")
INSTALL_LIMIT_S = 900.0
FONT_CACHE = ".matplotlib"
MAX_MESSAGE = 500


class PackagesMissing(Exception):
    """Failure of the installation. The message is the end of pip's output."""


def packages_folder(folder: Path) -> Path:
    """Return the place of the packages below `folder` for this version of Python and these requirements."""
    text = " ".join([sys.version, *REQUIREMENTS])
    return folder / f"packages-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def install(folder: Path) -> Path:
    """Return the folder with the packages, installed at the first call. Raises PackagesMissing, OSError."""
    target = packages_folder(folder)
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            _install(target)
    return target


def _install(target: Path) -> None:
    fresh = target.with_name(f".{target.name}")
    shutil.rmtree(fresh, ignore_errors=True)
    # Wheels only: the installation runs no code of a package.
    _run([*_installer(fresh), *REQUIREMENTS], os.environ)
    _run([sys.executable, "-c", "import matplotlib.font_manager"], _font_environment(fresh))
    # The account of the runner reads the packages.
    fresh.chmod(0o755)
    fresh.rename(target)


def _installer(target: Path) -> list[str]:
    """Return the command of pip, or of uv where the environment has no pip."""
    options = ["--quiet", "--only-binary", ":all:", "--target", str(target)]
    # Not importlib.util.find_spec: the finder that setuptools installs warns of distutils when it looks for pip.
    if PathFinder.find_spec("pip"):
        return [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--retries", "1", "install", *options]
    beside = Path(sys.executable).with_name("uv")
    return [str(beside) if beside.exists() else "uv", "pip", "install", "--python", sys.executable, *options]


def _font_environment(packages: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(packages), "MPLCONFIGDIR": str(packages / FONT_CACHE), "PATH": os.environ.get("PATH", os.defpath)}


def _run(command: list[str], environment: os._Environ[str] | dict[str, str]) -> None:
    try:
        done = subprocess.run(
            command, env=dict(environment), capture_output=True, text=True, check=False, timeout=INSTALL_LIMIT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PackagesMissing(str(error)) from error
    if done.returncode:
        raise PackagesMissing((done.stderr or done.stdout).strip()[-MAX_MESSAGE:])
