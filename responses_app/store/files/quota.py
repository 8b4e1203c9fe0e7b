"""Limits on writes: quota of a project over its stored files and its containers, and free space that the disk must keep.

The quota counts rows of StoredFile: the bytes of uploads, of files of containers and of files that code wrote. Bytes that
containers share with an upload have one row.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.db.models import Count, Sum

from responses_app.models import Container, ContainerFile, File, Project, StoredFile
from responses_app.store.files import storage
from responses_app.store.files.pending import upload_folder

logger = logging.getLogger("responses.files")

MIB = 1024 * 1024
# Seconds between two log entries about a full disk.
WARN_EVERY_S = 60.0
# Namespace of the advisory locks, so that two writes of a project count one after the other.
LOCK_SQL = "SELECT pg_advisory_xact_lock(hashtext('responses_app_file'), hashtext(%s))"

_last_warning = -WARN_EVERY_S


class WriteRefused(Exception):
    """Refused write. The message is a sentence for clients and for the model."""


class FileQuotaExceeded(WriteRefused):
    """Quota of the project exceeded: number of files, or bytes of all files."""


class ContainerQuotaExceeded(WriteRefused):
    """Limit on the containers of a project reached."""


class DiskFull(WriteRefused):
    """Free space of the disk below RESPONSES_MIN_FREE_MIB."""


def lock(project: str) -> None:
    """Wait until no other transaction adds files or containers to the project. The lock ends with the transaction."""
    with connection.cursor() as cursor:
        cursor.execute(LOCK_SQL, [project])


def add_file(project: str, name: str, size: int, replaced: str | None = None) -> None:
    """Count the bytes `name` of the storage in this transaction, in turn with other writes of the project.

    The arguments are those of `check_files`. Raises FileQuotaExceeded.
    """
    lock(project)
    check_files(project, size, replaced)
    StoredFile.objects.create(name=name, project=project, bytes=size)


def check_files(project: str, size: int, replaced: str | None = None) -> None:
    """Check that the project may add a file of `size` bytes. Raises FileQuotaExceeded.

    `replaced` is the name in the storage of the container file that the new file replaces.
    """
    stored = StoredFile.objects.filter(project=project)
    if replaced is not None and not _is_shared(replaced):
        stored = stored.exclude(name=replaced)
    usage = stored.aggregate(count=Count("pk"), size=Sum("bytes"))
    used = usage["size"] or 0
    most = settings.RESPONSES_FILES_PER_PROJECT
    if usage["count"] >= most:
        raise FileQuotaExceeded(
            f"This project has reached its limit of files ({most}). Delete files or containers before you add others."
        )
    of_project = Project.objects.filter(name=project).values_list("storage_mib", flat=True).first()
    limit = of_project or settings.RESPONSES_FILES_MIB_PER_PROJECT
    if used + size > limit * MIB:
        raise FileQuotaExceeded(
            f"The files of this project, with those in containers, may have {limit} MiB together."
            " Delete files or containers before you add others."
        )


def _is_shared(name: str) -> bool:
    """Return whether several rows name the bytes `name`."""
    copies = ContainerFile.objects.filter(storage_name=name).values_list("pk", flat=True)
    return len(copies[:2]) > 1 or File.objects.filter(storage_name=name).exists()


def check_containers(project: str) -> None:
    """Check that the project may add a container. Raises ContainerQuotaExceeded."""
    most = settings.RESPONSES_CONTAINERS_PER_PROJECT
    if Container.objects.filter(project=project).count() >= most:
        raise ContainerQuotaExceeded(f"This project has reached its limit of containers ({most}). Delete containers first.")


def check_disk(size: int = 0) -> None:
    """Check that RESPONSES_MIN_FREE_MIB are free after a write of `size` bytes. Raises DiskFull, StorageUnavailable."""
    floor = settings.RESPONSES_MIN_FREE_MIB
    for folder, free in _free_bytes() if floor else ():
        if free - size < floor * MIB:
            _warn(folder, free)
            raise DiskFull("The disk of the server is almost full, so no files can be stored. Responses are still answered.")


def _free_bytes() -> Iterator[tuple[Path, int]]:
    """Yield the folders that receive files, and the free bytes of their disks. Raises StorageUnavailable."""
    yield upload_folder(), shutil.disk_usage(upload_folder()).free
    free, folder = storage.free_bytes(), storage.local_folder()
    if free is not None and folder is not None:
        yield folder, free


def forget_warning() -> None:
    """Let the next refusal be logged."""
    global _last_warning
    _last_warning = -WARN_EVERY_S


def _warn(folder: Path, free: int) -> None:
    """Log that the disk of `folder` is almost full, at most once in WARN_EVERY_S."""
    global _last_warning
    now = time.monotonic()
    if now - _last_warning >= WARN_EVERY_S:
        _last_warning = now
        logger.error("files are refused: %s has %d MiB of free space, see RESPONSES_MIN_FREE_MIB", folder, free // MIB)
