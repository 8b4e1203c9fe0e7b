"""Changes of containers in the sandbox from outside of a run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from django.utils import timezone

from responses_app.models import Container, ContainerFile
from responses_app.sandbox.base import ContainerExpired, FileMissing, InvalidPath, SandboxUnavailable
from responses_app.sandbox.client import SandboxClient
from responses_app.store.files import storage
from responses_app.store.files.containers import is_expired
from responses_app.tools import sandbox_access


async def end_container(container: Container) -> None:
    """End a container in its sandbox. A sandbox that is not reachable loses the container at the expiry."""
    async with _sandbox_of(container) as sandbox:
        if sandbox is not None:
            await sandbox.delete(container.uid)


async def put_file(container: Container, file: ContainerFile) -> None:
    """Write a stored file to a container in the sandbox, if the container runs. A later start of the container writes all files."""
    async with _sandbox_of(container) as sandbox:
        if sandbox is not None:
            await sandbox.status(container.uid)
            await sandbox.put_file(container.uid, file.path, await storage.open_chunks(file.storage_name))


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
    has_run = container.last_active_at > container.created_at
    if not sandbox_access.is_configured() or not has_run or is_expired(container, timezone.now()):
        yield None
        return
    sandbox = sandbox_access.sandbox_client()
    try:
        with suppress(SandboxUnavailable, ContainerExpired, FileMissing, InvalidPath):
            yield sandbox
    finally:
        await sandbox.close()
