"""Checks of the host: keys, disk, open files, storage of files, sandbox."""

from __future__ import annotations

import asyncio
import resource
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from django.conf import settings
from django.db import DatabaseError

from responses_app.installation.data_dir import MANAGE, data_dir
from responses_app.models import ApiKey
from responses_app.sandbox.launch.problem import local_problem
from responses_app.server.bootstrap.first_api_key import other_secret_key, unshared_secret_key
from responses_app.server.doctor.findings import FAILED, OK, SKIPPED, WARNING, Check, CheckResults
from responses_app.server.http.admission import DESCRIPTORS_EACH, SPARE_DESCRIPTORS
from responses_app.store.files import storage
from responses_app.store.files.storage_check import missing_file, unmarked_folder
from responses_app.tools.part_checks import runner_problem, sandbox_urls
from responses_app.tools.sandbox_access import code_interpreter, missing_socket, start_failure

MIB: Final = 1024 * 1024
# Files of the data folder that no other account may read.
SECRET_FILES: Final = ("secret_key", "api_key")
PROBE: Final = b"verbatim doctor"


def checks() -> list[tuple[str, Check]]:
    """Return the checks of the host."""
    return [
        ("secret files", check_secret_files),
        ("API keys", check_api_keys),
        ("disk", check_disk),
        ("open files", check_open_files),
        ("storage", check_storage),
        ("sandbox", check_sandbox),
    ]


def check_secret_files() -> CheckResults:
    """Check that other accounts cannot read the secret files of the data folder."""
    folder = data_dir()
    for name in SECRET_FILES:
        file = folder / name
        if file.exists() and file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            yield FAILED, f"Other accounts may read {file}. Run: chmod 600 {file}"
            return
    yield OK, f"No other account may read the secrets in {folder}."


def check_api_keys() -> CheckResults:
    """Check that a request can be made: there is a key that is not revoked."""
    try:
        count = ApiKey.objects.filter(revoked_at=None).count()
    except DatabaseError:
        yield SKIPPED, "The database or its tables are missing."
        return
    if count:
        yield OK, f"{count} API key{'s' * (count > 1)} can be used."
    else:
        yield WARNING, f"There is no API key. Run: {MANAGE} createkey NAME"
    for problem in filter(None, (other_secret_key(data_dir()), unshared_secret_key())):
        yield WARNING, problem


def check_disk() -> CheckResults:
    """Check the free space of the data folder and of the folder of files against RESPONSES_MIN_FREE_MIB."""
    least = int(settings.RESPONSES_MIN_FREE_MIB)
    for folder, free_bytes in _disks():
        free = free_bytes // MIB
        if free < least:
            yield (
                FAILED,
                f"{free:,} MiB are free for {folder}, fewer than RESPONSES_MIN_FREE_MIB ({least:,}), so no file is stored. "
                "Free space, or set retention (docs/operations/retention.md).",
            )
        elif free < 2 * least:
            yield WARNING, f"{free:,} MiB are free for {folder}. Below {least:,} MiB no file is stored."
        else:
            yield OK, f"{free:,} MiB are free for {folder}."


def _disks() -> Iterator[tuple[Path, int]]:
    """Yield the data folder and the folder of files with the free bytes of their disks."""
    yield data_dir(), shutil.disk_usage(_existing(data_dir())).free
    folder = storage.local_folder()
    # The check of the storage names the reason of an error.
    with suppress(storage.StorageUnavailable):
        if folder is not None and folder != data_dir() and (free := storage.free_bytes()) is not None:
            yield folder, free


def check_open_files() -> CheckResults:
    """Check the hard limit of open files against RESPONSES_MAX_CONNECTIONS."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    needed = settings.RESPONSES_MAX_CONNECTIONS * DESCRIPTORS_EACH + SPARE_DESCRIPTORS
    if hard != resource.RLIM_INFINITY and hard < needed:
        yield (
            WARNING,
            f"The limit of open files is {hard:,}, and RESPONSES_MAX_CONNECTIONS needs {needed:,}, so a process accepts fewer "
            f"connections. Set LimitNOFILE={needed} in systemd, or `ulimit -Hn {needed}`.",
        )
    else:
        yield OK, f"The limit of open files allows {settings.RESPONSES_MAX_CONNECTIONS:,} connections."


def check_storage() -> CheckResults:
    """Write, read and delete a file in the storage, and look for the newest file of the database."""
    name = f"doctor-{uuid4().hex}"
    try:
        if folder := unmarked_folder():
            yield (
                FAILED,
                f"{folder} has no file {storage.MARKER}, so it is not the folder of the server that runs: mount its disk.",
            )
            return
    except (DatabaseError, storage.StorageUnavailable):
        # The checks of the database or the next lines name the reason.
        pass
    try:
        _write_probe(name)
        if storage.read(name, len(PROBE) + 1) != PROBE:
            yield FAILED, "The storage of files returns other bytes than were written. Check RESPONSES_FILE_STORAGE."
            return
        storage.delete(name)
        if storage.exists(name):
            yield FAILED, "The storage of files does not delete. Allow the account to delete objects."
            return
    except Exception as error:
        # Each storage has exceptions of its own.
        is_full = isinstance(error, storage.StorageUnavailable) and error.is_full
        action = "Free space on its disk." if is_full else "Check RESPONSES_FILE_STORAGE."
        yield FAILED, f"The storage of files cannot be used ({error}). {action}"
        return
    yield OK, "The storage of files writes, reads and deletes."
    try:
        missing = missing_file()
    except DatabaseError:
        return
    if missing is not None:
        yield FAILED, f"The storage has no {missing}, which the database has. All hosts need the same RESPONSES_FILE_STORAGE."


def check_sandbox() -> CheckResults:
    """Check runners at `http` addresses; if code runs on this machine, make a trial run."""
    mode, url = code_interpreter(), settings.RESPONSES_SANDBOX_URL
    yield from _check_runners()
    if mode == "off":
        yield SKIPPED, "RESPONSES_CODE_INTERPRETER is off."
    elif url and not url.startswith("unix:"):
        return
    elif problem := local_problem():
        status = FAILED if mode == "on" else WARNING
        yield status, f"The sandbox does not work, so code_interpreter is not offered. {problem}"
    elif problem := missing_socket():
        yield FAILED if mode == "on" else WARNING, problem
    elif reason := start_failure():
        yield FAILED if mode == "on" else WARNING, f"The sandbox of the server that runs does not start: {reason}"
    else:
        yield OK, "The sandbox works: a trial run has succeeded."


def _check_runners() -> CheckResults:
    """Check that the runners at `http` addresses serve a client with the token."""
    for name, url in sandbox_urls().items():
        if problem := asyncio.run(runner_problem(url)):
            yield FAILED, f"{name} is {url}: {problem}. Check the process of the runner and the setting."
        else:
            yield OK, f"The runner at {url} answers. Run {MANAGE} doctor there for a trial run."


def _write_probe(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_bytes(PROBE)
        storage.save(file, name)


def _existing(folder: Path) -> Path:
    return folder if folder.exists() else _existing(folder.parent)
