"""Changes of containers in the sandbox from outside of a run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from django.utils import timezone

from responses_app.models import Container, ContainerFile
from responses_app.sandbox.base import ContainerExpired, FileMissing, InvalidPath, SandboxUnavailable, StorageFull
from responses_app.sandbox.client import SandboxClient
from responses_app.store.files import containers, storage
from responses_app.tools import sandbox_access


class FileRefused(Exception):
    """File that cannot be in the running container. The message is for the client."""


async def end_container(container: Container) -> None:
    """End a container in its sandbox. A sandbox that is not reachable loses the container at the expiry.

    Call before and after the deletion of the row: code may start the container again meanwhile, and the process may end.
    """
    async with _sandbox_of(container) as sandbox:
        if sandbox is not None:
            await sandbox.delete(container.uid)


async def put_file(container: Container, file: ContainerFile) -> None:
    """Write a stored file to a container in the sandbox, if the container runs. A later start of the container writes all files.

    Raises FileRefused.
    """
    async with _sandbox_of(container) as sandbox:
        if sandbox is not None:
            await sandbox.status(container.uid)
            try:
                await sandbox.put_file(container.uid, file.path, await storage.open_chunks(file.storage_name))
            except (InvalidPath, StorageFull) as error:
                raise FileRefused(f"The file was not added to the container: {error}.") from error


async def delete_file(container: Container, path: str) -> None:
    """Delete a file of a container in the sandbox, if the container runs and has the file."""
    async with _sandbox_of(container) as sandbox:
        if sandbox is not None:
            await sandbox.delete_file(container.uid, path)


@asynccontextmanager
async def _sandbox_of(container: Container) -> AsyncIterator[SandboxClient | None]:
    """Connect to the sandbox of a container; None if no code can run in the container now, as a connection starts the sandbox.

    The errors of a sandbox that does not have the container or the file end the context.
    """
    # The use may have begun since the row was read. Without a row the deletion has set the time.
    used_at = await Container.objects.filter(pk=container.pk).values_list("last_active_at", flat=True).afirst()
    container.last_active_at = used_at or container.last_active_at
    if (
        not sandbox_access.is_configured()
        or not containers.has_run(container)
        or containers.is_expired(container, timezone.now())
    ):
        yield None
        return
    sandbox = sandbox_access.sandbox_client()
    try:
        with suppress(SandboxUnavailable, ContainerExpired, FileMissing, InvalidPath):
            yield sandbox
    finally:
        await sandbox.close()
