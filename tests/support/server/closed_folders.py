"""Makes what a fresh machine has below /root: the packages of Postgres, and a checkout, in a folder closed to other accounts."""

from __future__ import annotations

import shutil
import subprocess
from importlib.util import cache_from_source
from pathlib import Path

from responses_app.installation.data_dir import ROOT
from responses_app.server.postgres import programs


def packages(folder: Path, mode: int = 0o700) -> Path:
    """A folder for PYTHONPATH with a copy of the package of Postgres, closed to other accounts unless `mode` says otherwise."""
    folder.mkdir(parents=True)
    site = programs._site_packages()
    for file in (Path(programs.PACKAGE) / "__init__.py", *programs._files(site)):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(site / file, folder / file)
    folder.chmod(mode)
    return folder


def checkout(folder: Path) -> Path:
    """A copy of all files of the repository, with their bytecode, as a compilation of all would take ten seconds of CPU.

    The environment is a link, as a real one takes minutes to install.
    """
    folder.mkdir(mode=0o700, parents=True)
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True)
    sources = [Path(name) for name in filter(None, listed.stdout.decode().split("\0"))]
    bytecode = [Path(cache_from_source(str(name))) for name in sources if name.suffix == ".py"]
    for name in (*sources, *bytecode):
        if (ROOT / name).is_file() and not (ROOT / name).is_symlink():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    (folder / ".venv").symlink_to((ROOT / ".venv").resolve())
    return folder


def modes(folder: Path) -> dict[Path, int]:
    """Return the modes of a folder and of the folders above."""
    return {path: path.stat().st_mode for path in (folder, *folder.parents)}
