"""Account of the embedded Postgres, which refuses to run as root.

The account has no capability. Folders below a closed folder are passed as open descriptors (server.postgres.cluster).
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ACCOUNT = "pgserver"
USERADD_LIMIT_S = 10.0  # useradd waits for other programs that change the accounts.
# Folders of system commands, which `su` without `-` leaves out of PATH.
SYSTEM_FOLDERS = ("/usr/sbin", "/sbin")
# First user number of the search for an unnamed account; no distribution assigns numbers there.
UNNAMED_ID = 59432


@dataclass(frozen=True, slots=True)
class Account:
    """User and group by number, with or without a name."""

    uid: int
    gid: int

    @property
    def has_name(self) -> bool:
        """Return True if the user database has the number."""
        return _has_name(self.uid)

    def chown(self, path: Path | int) -> None:
        """Give a file, folder or open descriptor to the account; a symbolic link is not followed."""
        os.chown(path, self.uid, self.gid, follow_symlinks=isinstance(path, int))

    def give_tree(self, folder: Path) -> None:
        """Give a folder and the contents to the account."""
        for parent, folders, files in os.walk(folder):
            for name in (*folders, *files):
                self.chown(Path(parent) / name)
        self.chown(folder)


def account_for(cluster: Path) -> Account | None:
    """Choose the account for the Postgres of a cluster; None without root, where Postgres runs as the current user.

    The owner of an existing cluster stays the same: Postgres opens a cluster only as the owner.
    """
    if os.geteuid() != 0:
        return None
    with suppress(FileNotFoundError):
        status = cluster.stat()
        if status.st_uid != 0:
            return Account(status.st_uid, status.st_gid)
    entry = _entry(ACCOUNT) or _make()
    return Account(entry.pw_uid, entry.pw_gid) if entry else _unnamed()


def named_account(account: Account) -> Account | None:
    """Find an account with a name, which initdb needs; None if root is the only account."""
    if account.has_name:
        return account
    entry = _entry("nobody") or next((entry for entry in pwd.getpwall() if entry.pw_uid), None)
    return Account(entry.pw_uid, entry.pw_gid) if entry else None


def run_as(account: Account | None) -> dict[str, Any]:
    """Return the arguments of subprocess.Popen that run a program under the account; empty for an ordinary user."""
    return {"user": account.uid, "group": account.gid, "extra_groups": ()} if account else {}


def _unnamed() -> Account:
    """Choose an unused user number. Other services may run as `nobody` and could read the data."""
    number = next(number for number in range(UNNAMED_ID, 1 << 16) if not _has_name(number))
    return Account(number, number)


def _make() -> pwd.struct_passwd | None:
    program = shutil.which("useradd", path=os.pathsep.join([os.environ.get("PATH", os.defpath), *SYSTEM_FOLDERS]))
    command = ["--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", ACCOUNT]
    if program:
        with suppress(subprocess.TimeoutExpired):
            subprocess.run([program, *command], check=False, capture_output=True, timeout=USERADD_LIMIT_S)
    return _entry(ACCOUNT)


def _entry(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _has_name(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True
