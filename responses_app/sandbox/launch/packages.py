"""Packages for the code in containers, installed with pip in a folder of their own.

The folder has the parts `shared`, which containers see and where `site` appears at the end, and `state.json` for the runner.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

from responses_app.outbound_http.package_indexes import certificates, configured_indexes
from responses_app.sandbox.installation import STATE_FILE, InstallationState

REQUIREMENTS = ("numpy==2.4.6", "pandas==3.1.1", "matplotlib==3.11.2", "pillow==13.0.0")
# Folder of the sandbox in the data folder.
FOLDER = "sandbox"
INSTALL_LIMIT_S = 900.0
FONT_CACHE = ".matplotlib"
MAX_MESSAGE = 500
READABLE = 0o044
NO_INSTALLER = "neither pip nor uv is installed beside the server"
# Words of pip and uv about a package index that does not answer.
UNREACHABLE = (
    *("NewConnectionError", "ConnectionError", "ConnectTimeout", "ReadTimeout", "name resolution", "NameResolutionError"),
    *("Connection refused", "dns error", "error sending request", "Could not connect", "Network is unreachable", "ProxyError"),
)


class PackagesMissing(Exception):
    """Failure of the installation. The message has the end of pip's output, `step` is a sentence without the output."""

    def __init__(self, message: str, step: str = "pip has failed; the log has its output") -> None:
        is_offline = any(word in message for word in UNREACHABLE)
        self.step = "the package index cannot be reached" if is_offline else step
        super().__init__(f"{self.step}: {message[-MAX_MESSAGE:]}" if is_offline else message[-MAX_MESSAGE:])


def names() -> str:
    """Return the names of the packages for a sentence."""
    return ", ".join(requirement.partition("==")[0] for requirement in REQUIREMENTS)


def packages_folder(folder: Path) -> Path:
    """Return the place of the packages below `folder` for this version of Python and these requirements."""
    return folder / f"containers-{_version()}"


def is_installed(folder: Path) -> bool:
    """Return whether the packages are complete."""
    return _site(folder).exists() or _earlier_place(folder).exists()


def prepared_folder(folder: Path) -> Path:
    """Return the folder of the packages, where the packages may appear later. Raises OSError."""
    target = packages_folder(folder)
    (target / "shared").mkdir(parents=True, exist_ok=True)
    # The account of the runner reads the packages.
    for part in (target, target / "shared"):
        # An image has the packages in a folder of root's, which the account of the server cannot change.
        if part.stat().st_mode & 0o777 != 0o755:
            part.chmod(0o755)
    if not _site(folder).exists() and _earlier_place(folder).exists():
        _earlier_place(folder).rename(_site(folder))
    _make_readable(_site(folder))
    return target


def install(folder: Path) -> Path:
    """Return the folder with the packages, installed at the first call. Raises PackagesMissing, OSError."""
    target = prepared_folder(folder)
    if _site(folder).exists():
        return target
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _site(folder).exists():
            _install(target, _site(folder))
    return target


def write_state(folder: Path, state: InstallationState) -> None:
    """Write the state of the installation, for the runner and for the pages. Raises OSError."""
    target = prepared_folder(folder)
    fresh = target / f".{STATE_FILE}"
    fresh.write_text(state.to_json())
    fresh.chmod(0o644)
    fresh.rename(target / STATE_FILE)


def read_state(folder: Path) -> InstallationState | None:
    """Return the state that was written last; None before the first installation."""
    return InstallationState.read(packages_folder(folder))


def summary(folder: Path) -> str:
    """Return a sentence about the packages."""
    if is_installed(folder):
        return "installed"
    state = read_state(folder)
    return "not installed" if state is None else state.sentence()


def _version() -> str:
    text = " ".join([sys.version, *REQUIREMENTS])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _site(folder: Path) -> Path:
    return packages_folder(folder) / "shared" / "site"


def _earlier_place(folder: Path) -> Path:
    """Return the place of the packages in earlier versions of the server."""
    return folder / f"packages-{_version()}"


def _make_readable(site: Path) -> None:
    """Let the account of the runner read packages that an earlier version installed under a closed umask. Raises OSError."""
    if not site.exists() or all(entry.stat().st_mode & READABLE == READABLE for entry in site.iterdir()):
        return
    for folder, _, files in os.walk(site):
        Path(folder).chmod(0o755)
        for name in files:
            path = Path(folder, name)
            if not path.is_symlink():
                # Programs stay programs.
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)


def _install(target: Path, site: Path) -> None:
    fresh, temporary = target / "fresh", target / "temporary"
    # An installation that was killed leaves its files behind, those of pip too: more than 100 MB.
    for folder in (fresh, temporary):
        shutil.rmtree(folder, ignore_errors=True)
    temporary.mkdir()
    # Wheels only: the installation runs no code of a package.
    try:
        _run([*_installer(fresh), *REQUIREMENTS], {**os.environ, **certificates(), "TMPDIR": str(temporary)})
        _run([sys.executable, "-P", "-c", "import matplotlib.font_manager"], _font_environment(fresh))
        fresh.chmod(0o755)
        fresh.rename(site)
    except (PackagesMissing, OSError):
        # A part of the packages must not keep a disk full.
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _installer(target: Path) -> list[str]:
    """Return the command of pip, or of uv where the environment has no pip."""
    options = ["--quiet", "--only-binary", ":all:", "--target", str(target)]
    # Not importlib.util.find_spec: the finder that setuptools installs warns of distutils when it looks for pip.
    if PathFinder.find_spec("pip"):
        return [
            sys.executable,
            "-P",
            "-m",
            "pip",
            "--disable-pip-version-check",
            "--no-input",
            "--retries",
            "1",
            "install",
            *options,
        ]
    beside = Path(sys.executable).with_name("uv")
    program = str(beside) if beside.exists() else "uv"
    return [program, "pip", "install", "--python", sys.executable, *configured_indexes().options(), *options]


def _font_environment(packages: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(packages), "MPLCONFIGDIR": str(packages / FONT_CACHE), "PATH": os.environ.get("PATH", os.defpath)}


def _run(command: list[str], environment: dict[str, str]) -> None:
    try:
        # The account of the runner reads the packages, whatever the umask of the server is.
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=INSTALL_LIMIT_S, umask=0o022
        )
    except FileNotFoundError as error:
        raise PackagesMissing(NO_INSTALLER, NO_INSTALLER) from error
    except subprocess.TimeoutExpired as error:
        raise PackagesMissing(str(error), f"pip took more than {INSTALL_LIMIT_S:.0f} seconds") from error
    except OSError as error:
        raise PackagesMissing(str(error), str(error)) from error
    if done.returncode:
        raise PackagesMissing((done.stderr or done.stdout).strip())
