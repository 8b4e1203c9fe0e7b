"""Containers of a run: rows of the database joined with containers of the sandbox."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.utils import timezone

from responses_app.dialects.citations.sources import ContainerFileSource
from responses_app.models import Container, ContainerFile, File
from responses_app.observability.records import current_response
from responses_app.sandbox import base
from responses_app.sandbox.base import ContainerExpired, RunResult
from responses_app.sandbox.client import SandboxClient
from responses_app.store.files import container_files, containers, files, storage
from responses_app.store.files.quota import WriteRefused
from responses_app.store.files.storage import StorageUnavailable
from responses_app.store.outages import repeat_while_away

logger = logging.getLogger("responses.tools")

LOST_VARIABLES = "This container was restarted: variables of earlier calls are lost, and files in /mnt/data are still there."
KILLED = (
    "The container was restarted because this call was ended: all variables are lost, and files in /mnt/data are still there."
)
ENDED_BEFORE_STORED = "The container ended before all files of the call were stored."
_TOO_LONG = "{} is too long to be offered for download."
# Files of a call that are stored beside the sandbox.
MAX_FILES = 64
MAX_FILE_BYTES = 64 * 1024 * 1024
# Length of the column of paths.
MAX_PATH_CHARS = 512
MAX_NOTICE_CHARS = 200
# Paths in a notice about files that were refused.
MAX_NAMED = 8


class ContainerProblem(Exception):
    """Container that cannot be used. The message is for the model."""


class ContainerSession:
    """Container of a run, started at the first call.

    `container` is the value of the tool's field: the id of a container, or the object of an automatic container. `fallback` is the
    id of an automatic container, the same for each owner of the run. `new_id` makes an id from a prefix.
    """

    def __init__(
        self, project: str, container: Any, fallback: str, sandbox: SandboxClient, new_id: Callable[[str], str]
    ) -> None:
        self._project, self._sandbox, self._new_id = project, sandbox, new_id
        self._auto = None if isinstance(container, str) else container
        self.container_id = container if isinstance(container, str) else fallback
        self._response = _order(fallback)
        # Files of the container by path, in the form of citations.
        self.citable: dict[str, ContainerFileSource] = {}

    async def choose(self, used: Sequence[str]) -> None:
        """Choose the newest container of `used` that exists and has not expired, if the container is automatic."""
        if self._auto is not None and used:
            rows = containers.of_project(self._project).filter(uid__in=set(used))
            alive = {row.uid async for row in rows if not containers.is_expired(row, timezone.now())}
            self.container_id = next((uid for uid in reversed(used) if uid in alive), self.container_id)
        row = await containers.find(self._project, self.container_id)
        if row is not None:
            async for file in row.files.order_by("pk"):
                self._cite(row, file)

    def is_older(self, file: ContainerFileSource) -> bool:
        """Return whether `file` was there before the response."""
        return _order(file.file_id) < self._response

    async def run(self, uid: str, code: str, started: Callable[[], None]) -> tuple[RunResult, list[str]]:
        """Run `code` in the container `uid` and store the files. Return the result, and notices for the model.

        While the database is away, the call waits. Raises ContainerProblem, SandboxError.
        """
        row, notices, stored = await self._started(uid)
        started()
        try:
            result = await self._sandbox.run(uid, code)
        except ContainerExpired:
            # The sandbox has ended the container since, to start another one. Or a client has deleted the row.
            # The code has not run.
            row, notices, stored = await self._started(uid)
            result = await self._sandbox.run(uid, code)
        await repeat_while_away(partial(containers.touch, row))
        notices += [*result.notices, *([KILLED] if result.was_killed else [])]
        await self._delete_files(row, {path: stored[path] for path in result.deleted if path in stored})
        notices += await self._save_files(row, result.files)
        return result, notices

    async def _started(self, uid: str) -> tuple[Container, list[str], Mapping[str, str]]:
        """Return the row of a container that runs, notices for the model, and the names in the storage of the files by path.

        Raises ContainerProblem, SandboxError.
        """

        async def start() -> tuple[Container, list[str], Mapping[str, str]]:
            row = await self._row(uid)
            return row, await self._start(row), await container_files.storage_names(row)

        return await repeat_while_away(start)

    async def close(self) -> None:
        """Close the connections to the sandbox."""
        await self._sandbox.close()

    async def _row(self, uid: str) -> Container:
        """Return the row of a container; an automatic container is created. Raises ContainerProblem."""
        row = await containers.find(self._project, uid)
        if row is not None:
            return row
        if self._auto is None:
            raise ContainerProblem(f"The container '{uid}' was deleted.")
        now = timezone.now()
        row = Container(
            uid=uid,
            project=self._project,
            name="auto",
            memory_limit=self._auto.get("memory_limit") or "1g",
            created_at=now,
            last_active_at=now,
        )
        file_ids = self._auto.get("file_ids") or ()
        uploads = [upload async for upload in files.visible(self._project, now).filter(uid__in=file_ids)]
        try:
            if await sync_to_async(container_files.create_container)(row, uploads, self._new_id):
                return row
        except WriteRefused as error:
            raise ContainerProblem(str(error)) from None
        except File.DoesNotExist:
            raise ContainerProblem("A file of the container was deleted while the container was created.") from None
        raise ContainerProblem("The container cannot be created.")

    async def _start(self, row: Container) -> list[str]:
        """Start the container in the sandbox unless it runs. Return notices for the model."""
        try:
            await self._sandbox.status(row.uid)
            return []
        except ContainerExpired:
            has_run, last_active_at = containers.has_run(row), row.last_active_at
        # Before the files are read: requests that add a file or delete the container later go on to the sandbox.
        if not await containers.touch(row):
            raise ContainerProblem(f"The container '{row.uid}' was deleted.")
        notices, is_new = [LOST_VARIABLES] if has_run else [], False
        try:
            # Another response may start the container at the same time: one of them copies the files, and the runs of all wait.
            if is_new := await self._sandbox.create_empty(row.uid, row.memory_limit, row.project):
                notices += await self._copy_files(row)
                await self._sandbox.note_files(row.uid)
            return notices
        except BaseException as error:
            # The next call must not find a container that lacks files.
            if is_new:
                with suppress(base.SandboxError):
                    await self._sandbox.delete(row.uid)
            if not has_run:
                await containers.touch(row, last_active_at)
            if isinstance(error, StorageUnavailable):
                logger.error("%s: files of %s: %s", current_response.get(), row.uid, error)
                raise ContainerProblem(
                    f"The code was not run, as the container cannot get its files. {error.refusal}"
                ) from None
            raise

    async def _copy_files(self, row: Container) -> list[str]:
        """Copy the stored files into a container that has just started. Return notices for the model. Raises StorageUnavailable."""
        notices: list[str] = []
        async for file in row.files.order_by("pk"):
            try:
                await self._sandbox.put_file(row.uid, file.path, await storage.open_chunks(file.storage_name))
            except base.InvalidPath:
                notices.append(f"{file.path[:MAX_NOTICE_CHARS]} is not in the container: {_path_problem(file.path)}.")
            except base.StorageFull:
                notices.append(f"{file.path[:MAX_NOTICE_CHARS]} is not in the container, which has no space for the file.")
            except FileNotFoundError:
                notices.append(f"{file.path[:MAX_NOTICE_CHARS]} is not in the container: the storage of files has lost it.")
        return notices

    async def _delete_files(self, row: Container, names: Mapping[str, str]) -> None:
        """Delete stored files that the code has deleted. `names` are the names in the storage before the run, by path."""
        if names:
            await repeat_while_away(partial(container_files.delete_written, row, names))
        for path in names:
            self.citable.pop(path, None)

    async def _save_files(self, row: Container, written: Iterable[base.WorkFile]) -> list[str]:
        """Copy written files to the storage. Return notices about files that were left out."""
        notices: list[str] = []
        refused: dict[str, list[str]] = {}
        for index, file in enumerate(written):
            if index == MAX_FILES:
                notices.append(f"{file.path} and the files behind it are too many to be offered for download.")
                break
            if file.size > MAX_FILE_BYTES:
                notices.append(_TOO_LONG.format(file.path))
                continue
            if len(file.path) > MAX_PATH_CHARS:
                notices.append(f"{file.path[:MAX_NOTICE_CHARS]}… has too long a path to be offered for download.")
                continue
            try:
                self._cite(row, await self._save(row, file))
            except base.InvalidPath:
                notices.append(f"{file.path} is in too many folders to be offered for download.")
            except WriteRefused as error:
                refused.setdefault(str(error), []).append(file.path)
            except container_files.FileTooLong:
                notices.append(_TOO_LONG.format(file.path))
            except base.FileMissing:
                # Other code in the container has deleted the file since.
                continue
            except (ContainerExpired, Container.DoesNotExist):
                notices.append(ENDED_BEFORE_STORED)
                break
        return notices + [_refusal_notice(reason, paths) for reason, paths in refused.items()]

    async def _save(self, row: Container, file: base.WorkFile) -> ContainerFile:
        def read() -> AsyncIterator[bytes]:
            return self._sandbox.read_file(row.uid, file.path)

        try:
            new_id = self._new_id("cfile_")
            return await repeat_while_away(partial(container_files.save, row, new_id, file, read, MAX_FILE_BYTES))
        except StorageUnavailable as error:
            logger.error("%s: %s of %s is not stored: %s", current_response.get(), file.path, row.uid, error)
            raise WriteRefused(error.refusal) from error

    def _cite(self, row: Container, file: ContainerFile) -> None:
        self.citable[file.path] = ContainerFileSource(row.uid, file.uid, file.filename)


def _path_problem(path: str) -> str:
    """Return why a stored file cannot be at `path`."""
    if any(len(name.encode()) > container_files.MAX_NAME_BYTES for name in path.split("/")):
        return f"a name may have {container_files.MAX_NAME_BYTES} bytes"
    return "an earlier file of the container is a part of the path, or the path is an earlier folder"


def _refusal_notice(reason: str, paths: Sequence[str]) -> str:
    """Return a notice about files that were not stored for the same reason."""
    more = f" and {len(paths) - MAX_NAMED} more" if len(paths) > MAX_NAMED else ""
    names = ", ".join(path[:MAX_NOTICE_CHARS] for path in paths[:MAX_NAMED])
    return f"Not stored, and not offered for download: {names}{more}. {reason}"


def _order(uid: str) -> str:
    """Return the part of an id that orders ids by the time at which they were made."""
    return uid.partition("_")[2]
