"""Installation of clients from the registries, into folders of their own that later runs find again."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from responses_app.installation.data_dir import ROOT

CACHE = ROOT / ".data" / "clients"
LIMIT_S = 600.0
NPM = ("npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
PIP = ("-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check")


class NotInstalled(Exception):
    """The clients cannot be installed; the message has the reason."""


def install_npm(manifest: Path, limit_s: float = LIMIT_S) -> Path:
    """Install the packages of a `package.json` and return their folder. Raises NotInstalled."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise NotInstalled("there is no node, or no npm")
    folder, done = _place(manifest)
    if not done.exists():
        shutil.copy(manifest, folder)
        _run(NPM, folder, limit_s)
        done.touch()
    return folder


def install_pip(manifest: Path, limit_s: float = LIMIT_S) -> Path:
    """Install the packages of a `requirements.txt` and return the Python interpreter. Raises NotInstalled."""
    folder, done = _place(manifest)
    python = folder / "bin" / "python"
    if not done.exists():
        _run((sys.executable, "-m", "venv", "--clear", str(folder)), CACHE, limit_s)
        _run((str(python), *PIP, "--requirement", str(manifest.resolve())), folder, limit_s)
        done.touch()
    return python


def _place(manifest: Path) -> tuple[Path, Path]:
    """Return a folder for this manifest and interpreter, and the mark of a complete installation."""
    key = hashlib.sha256(manifest.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = CACHE / f"{manifest.parent.name}-{key}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder, folder / "complete"


def _run(command: tuple[str, ...], folder: Path, limit_s: float) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    try:
        result = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"{Path(command[0]).name} took more than {limit_s:.0f} s") from None
    if result.returncode:
        errors = [line for line in (result.stderr or result.stdout).splitlines() if "ERR" in line or "error" in line]
        raise NotInstalled(f"{Path(command[0]).name} could not install: {' '.join(errors[:3]) or result.stderr[-300:]}")
