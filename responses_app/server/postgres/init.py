"""Cluster of the embedded Postgres: initdb, and the connection rules of pg_hba.conf."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from responses_app.engines import orphan_guard
from responses_app.server.postgres.account import Account, named_account, run_as

INIT_LIMIT_S = 300.0
# The built-in locale provider needs no locale of the machine. `trust`, because access to the socket's folder is required.
INIT = (
    *("--username=postgres", "--encoding=UTF8", "--auth-local=trust", "--auth-host=reject", "--no-instructions"),
    *("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"),
)
MIB = 1024 * 1024
# Of a new cluster with its WAL and the tables of the server.
NEW_CLUSTER_MIB = 60
RULES = "pg_hba.conf"
TRUSTED_HOST = re.compile(r"^(host\w*\s.*\s)trust[ \t]*$", re.MULTILINE)
# Environment variables that Postgres gets. Others may hold secrets, and SQL functions can read /proc/self/environ.
PASSED_ON = ("PATH", "TZ", "LANG", "LC_ALL", "LD_LIBRARY_PATH", orphan_guard.MARK)


class CannotMake(Exception):
    """Failure of initdb; the message has the remedy, or ends with the output of initdb."""


def environment() -> dict[str, str]:
    """Return the environment of Postgres."""
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ}


def open_folder(folder: Path) -> int:
    """Open a folder that is passed to Postgres. Raises OSError for a symbolic link."""
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def handed(folder: int) -> str:
    """Return the path of an open folder for a process that inherits the descriptor, even below closed folders.

    `/proc/self/fd` refers to the folder itself, so the kernel checks no parent folder (proc(5)).
    """
    return f"/proc/self/fd/{folder}"


def make_cluster(cluster: Path, programs: Path, account: Account | None, *, is_durable: bool = True) -> None:
    """Make the cluster if missing. Raises CannotMake, OSError."""
    if (cluster / "PG_VERSION").exists():
        return
    # Made under another name and renamed, so that an interrupted start leaves no partial cluster.
    fresh = cluster.with_name("postgres.new")
    if fresh.exists():
        shutil.rmtree(fresh)
    fresh.mkdir(mode=0o700)
    maker = named_account(account) if account else None
    if account and not maker:
        raise CannotMake("initdb needs an account other than root, and this machine has none; make one, or set DATABASE_URL")
    if maker:
        maker.chown(fresh)
    _run_initdb(fresh, programs, maker, [] if is_durable else ["--no-sync"])
    if account and maker != account:
        account.give_tree(fresh)
    fresh.replace(cluster)


def reject_hosts(folder: int, account: Account | None) -> None:
    """Replace `trust` by `reject` for TCP connections in clusters of older versions.

    The account owns the folder and could place a symbolic link, which root must not follow.
    """
    with open(os.open(RULES, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder), encoding="utf-8") as file:
        rules = file.read()
    changed = TRUSTED_HOST.sub(r"\1reject", rules)
    if changed == rules:
        return
    fresh = f"{RULES}.new"
    with suppress(FileNotFoundError):
        os.unlink(fresh, dir_fd=folder)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder), "w", encoding="utf-8") as file:
        if account:
            account.chown(file.fileno())
        file.write(changed)
    os.replace(fresh, RULES, src_dir_fd=folder, dst_dir_fd=folder)


def _run_initdb(fresh: Path, programs: Path, maker: Account | None, options: Sequence[str]) -> None:
    folder = open_folder(fresh)
    command = [str(programs / "initdb"), "-D", handed(folder) if maker else str(fresh), *INIT, *options]
    try:
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            cwd="/",
            env=environment(),
            timeout=INIT_LIMIT_S,
            pass_fds=(folder,),
            **run_as(maker),
        )
    except subprocess.TimeoutExpired:
        raise CannotMake(f"initdb did not end within {INIT_LIMIT_S:.0f} s") from None
    finally:
        os.close(folder)
    if done.returncode:
        message = (done.stderr or done.stdout).strip()
        raise CannotMake(room_problem(message, fresh.parent) or f"initdb failed: {message}")


def room_problem(message: str, folder: Path) -> str | None:
    """Return what to do about a full disk of `folder`, or a full /dev/shm, that a message of Postgres names. None for other messages."""
    if os.strerror(errno.ENOSPC) not in message:
        return None
    if "shared memory" in message:
        return "the shared memory of /dev/shm is too small for Postgres: start the container with --shm-size=256m, or set DATABASE_URL"
    free = shutil.disk_usage(folder).free // MIB
    return (
        f"{folder} has no room for the database, as {free:,} MiB are free and a new one needs {NEW_CLUSTER_MIB}: make room, or set "
        "RESPONSES_DATA_DIR to a folder on another disk"
    )
