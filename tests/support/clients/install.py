"""Clients as their users install them: from the registries, into folders of their own that later runs find again."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from responses_app.local.data_dir import ROOT

HERE = Path(__file__).parents[2] / "clients"
CACHE = ROOT / ".data" / "clients"
LIMIT_S = 600
NPM = ("npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
PIP = ("-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check")


class NotInstalled(Exception):
    """The clients are not to be had; the message says why."""


def npm(group: str, home: Path = HERE) -> Path:
    """The folder with the packages of `group/package.json`, which is in `home`. Raises NotInstalled."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise NotInstalled("there is no node, or no npm")
    folder, done = _place(home / group / "package.json")
    if not done.exists():
        shutil.copy(home / group / "package.json", folder)
        _run(NPM, folder)
        done.touch()
    return folder


def pip(group: str) -> Path:
    """The Python that has what `group/requirements.txt` names. Raises NotInstalled."""
    wanted = HERE / group / "requirements.txt"
    folder, done = _place(wanted)
    python = folder / "bin" / "python"
    if not done.exists():
        _run((sys.executable, "-m", "venv", "--clear", str(folder)), CACHE)
        _run((str(python), *PIP, "--requirement", str(wanted)), folder)
        done.touch()
    return python


def _place(manifest: Path) -> tuple[Path, Path]:
    """A folder for this very manifest and interpreter, and the mark that it is complete."""
    key = hashlib.sha256(manifest.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = CACHE / f"{manifest.parent.name}-{key}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder, folder / "complete"


def _run(command: tuple[str, ...], folder: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    try:
        result = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"{Path(command[0]).name} took more than {LIMIT_S} s") from None
    if result.returncode:
        said = [line for line in (result.stderr or result.stdout).splitlines() if "ERR" in line or "error" in line]
        raise NotInstalled(f"{Path(command[0]).name} could not install: {' '.join(said[:3]) or result.stderr[-300:]}")
