"""As whom Postgres runs: it refuses root, so root lends it an account, and the right to walk to its own files."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

ACCOUNT = "pgserver"
MAKE_LIMIT = 10.0  # useradd waits for whoever else changes the accounts.
# Bits of CapPrm (capabilities(7)), the smaller right first: the second one is what a container's root usually has.
WALK = {"dac_read_search": 1 << 2, "dac_override": 1 << 1}


def account() -> pwd.struct_passwd | None:
    """The account for Postgres if we are root, made at the first call; None if we are not, and it can run as ourselves."""
    if os.geteuid() != 0:
        return None
    return _entry(ACCOUNT) or _made() or pwd.getpwnam("nobody")


def prefix(paths: Sequence[Path]) -> list[str]:
    """What to put before a command so that it runs under `account` and reaches `paths`; nothing for an ordinary user.

    A checkout below /root is closed to other accounts. Opening it with chmod would outlive us, so the process gets the
    right to pass closed folders instead, and only if it needs it.
    """
    owner = account()
    if owner is None:
        return []
    command = ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]
    right = None if all(map(_open_to_all, paths)) else _right()
    return [*command, f"--inh-caps=+{right}", f"--ambient-caps=+{right}"] if right else command


def give(path: Path) -> None:
    """Make `account` the owner of a file or folder; nothing happens for an ordinary user."""
    owner = account()
    if owner:
        os.chown(path, owner.pw_uid, owner.pw_gid)


def _open_to_all(path: Path) -> bool:
    return all(folder.stat().st_mode & 0o001 for folder in path.resolve().parents)


def _right() -> str | None:
    status = Path("/proc/self/status").read_text()
    mine = int(next(line for line in status.splitlines() if line.startswith("CapPrm")).split()[1], 16)
    return next((name for name, bit in WALK.items() if mine & bit), None)


def _made() -> pwd.struct_passwd | None:
    command = ["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", ACCOUNT]
    if shutil.which("useradd"):
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(command, check=False, capture_output=True, timeout=MAKE_LIMIT)
    return _entry(ACCOUNT)


def _entry(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None
