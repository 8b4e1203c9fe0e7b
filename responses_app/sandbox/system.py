"""System calls of Linux that Python 3.11 does not offer: mounts, private mount namespaces, ambient capabilities."""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path

CLONE_NEWNS = 0x00020000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 1, 47, 4

_libc = ctypes.CDLL(None, use_errno=True)


def unshare_mounts() -> None:
    """Move this process to a separate mount namespace, whose mounts end with the namespace. Raises OSError."""
    _check(_libc.unshare(CLONE_NEWNS), "unshare")
    _check(_libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount /")


def mount_tmpfs(folder: Path, options: str) -> None:
    """Mount a tmpfs on `folder`. Raises OSError."""
    _check(_libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", MS_NOSUID | MS_NODEV, options.encode()), f"mount {folder}")


def bind(source: Path, folder: Path) -> None:
    """Mount the folder `source` on `folder`. Raises OSError."""
    _check(_libc.mount(os.fsencode(source), os.fsencode(folder), None, MS_BIND | MS_REC, None), f"mount {folder}")


def unmount(folder: Path) -> None:
    """Detach the mount on `folder`; the kernel frees the mount after the last use. Raises OSError."""
    _check(_libc.umount2(os.fsencode(folder), MNT_DETACH), f"unmount {folder}")


def end_with_parent(parent: int) -> None:
    """Have the kernel send SIGTERM when the thread that started this process ends; at once if `parent` has ended already."""
    _check(_libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0), "prctl")
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def clear_ambient_capabilities() -> None:
    """Give no capability to programs that this process starts."""
    _check(_libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "prctl")


def _check(result: int, name: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
