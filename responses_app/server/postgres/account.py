"""The account that Postgres runs under: Postgres refuses to run as root, so root starts it as another user.

The account gets no capability. What it needs below a closed folder is handed to it as open folders (server.postgres).
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
# `su` without `-` leaves the folders of system commands out of PATH.
SYSTEM_FOLDERS = ("/usr/sbin", "/sbin")
# Where the search for a number without an account begins, if no account can be made: no distribution assigns numbers there.
UNNAMED_ID = 59432


@dataclass(frozen=True, slots=True)
class Account:
    """A user and a group by number; they need no name."""

    uid: int
    gid: int

    @property
    def has_name(self) -> bool:
        """Whether the user database knows the number."""
        return _has_name(self.uid)

    def chown(self, path: Path | int) -> None:
        """Make it the owner of a file or folder, which may be an open descriptor; a symbolic link is not followed."""
        os.chown(path, self.uid, self.gid, follow_symlinks=isinstance(path, int))

    def give_tree(self, folder: Path) -> None:
        """Make it the owner of the folder and of everything in it."""
        for parent, folders, files in os.walk(folder):
            for name in (*folders, *files):
                self.chown(Path(parent) / name)
        self.chown(folder)


def account_for(cluster: Path) -> Account | None:
    """Choose the account for the Postgres of this cluster; None if we are not root, and Postgres runs as ourselves.

    An existing cluster keeps its owner, as Postgres opens a cluster only as the user that owns it.
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
    """Find an account that initdb accepts, which looks up the name of its user; None if there is none but root."""
    if account.has_name:
        return account
    entry = _entry("nobody") or next((entry for entry in pwd.getpwall() if entry.pw_uid), None)
    return Account(entry.pw_uid, entry.pw_gid) if entry else None


def run_as(account: Account | None) -> dict[str, Any]:
    """Make the arguments of subprocess.Popen for running under the account; none for an ordinary user."""
    return {"user": account.uid, "group": account.gid, "extra_groups": ()} if account else {}


def _unnamed() -> Account:
    """Choose a number that no account has. `nobody` would do, but other services may run as `nobody` and read our data."""
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
