"""Delegated cgroup v2 of the launcher, as systemd with `Delegate=yes` and containers with a writable /sys/fs/cgroup provide."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")
CONTROLLERS = ("memory", "pids", "cpu")
# Files that a process needs to move processes and to make cgroups.
GIVEN = ("", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control")


def prepare(mount: Path = MOUNT, own_cgroup: str | None = None) -> str:
    """Enable the controllers for cgroups below the own cgroup, and return the folder; empty where this is not possible.

    The controllers can be enabled only if all processes of the cgroup move to a leaf, so that the launcher must be the only one.
    """
    try:
        folder = mount / (own_cgroup if own_cgroup is not None else _own_cgroup()).lstrip("/")
        available = (folder / "cgroup.controllers").read_text().split()
        if not {"memory", "pids"} <= set(available):
            return ""
        leaf = folder / "runner"
        leaf.mkdir(exist_ok=True)
        (leaf / "cgroup.procs").write_text(str(os.getpid()))
        enabled = " ".join(f"+{name}" for name in CONTROLLERS if name in available)
        (folder / "cgroup.subtree_control").write_text(enabled)
    except (OSError, ValueError):
        return ""
    return str(folder)


def give(cgroup: str, account: int) -> None:
    """Give the cgroup to an account."""
    for name in GIVEN if cgroup else ():
        for folder in (Path(cgroup), Path(cgroup) / "runner"):
            with suppress(OSError):
                os.chown(folder / name, account, account)


def _own_cgroup() -> str:
    """Return the path of the cgroup v2 of this process. Raises ValueError without a cgroup."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        if line.startswith("0::"):
            return line.removeprefix("0::")
    raise ValueError("no cgroup v2")
