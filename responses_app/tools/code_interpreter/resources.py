"""Checks of what a declared code interpreter refers to, before anything runs: containers and uploaded files."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from django.utils import timezone

from responses_app.errors import InvalidRequest, NotFound, unknown_file
from responses_app.store.files import containers, files
from responses_app.tools.base import Json
from responses_app.tools.sandbox_access import sandbox_problem


async def check(project: str, declared: Json, path: str) -> None:
    """Check that the container and files of the tool `declared` exist, and that code can run. Raises InvalidRequest, NotFound."""
    container, where = declared["container"], f"{path}.container"
    if isinstance(container, str):
        await _check_container(project, container, where)
    else:
        await _check_files(project, container.get("file_ids") or (), f"{where}.file_ids")
    # The first call in a process makes a trial run of the sandbox.
    if (problem := await asyncio.to_thread(sandbox_problem)) is not None:
        raise InvalidRequest(problem, param=path)


async def _check_container(project: str, uid: str, where: str) -> None:
    row = await containers.find(project, uid)
    if row is None:
        raise NotFound(f"No container found with id '{uid}'.", param=where)
    if containers.is_expired(row, timezone.now()):
        minutes = row.expires_after_minutes
        message = (
            f"The container '{uid}' has expired: it was not used for {minutes} minutes, and its variables are lost. Create another "
            "container; the files of this one can still be downloaded."
        )
        raise InvalidRequest(message, param=where, code="container_expired")


async def _check_files(project: str, file_ids: Sequence[str], where: str) -> None:
    known = {uid async for uid in files.visible(project, timezone.now()).filter(uid__in=file_ids).values_list("uid", flat=True)}
    for index, uid in enumerate(file_ids):
        if uid not in known:
            raise unknown_file(uid, f"{where}[{index}]")
