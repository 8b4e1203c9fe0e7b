"""Connections to the sandbox of the settings, and changes of containers from outside of a run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from django.conf import settings
from django.utils import timezone

from responses_app.models import Container, ContainerFile
from responses_app.sandbox.base import ContainerExpired, FileMissing, InvalidPath, Sandbox, SandboxUnavailable
from responses_app.sandbox.client import SandboxClient
from responses_app.store.content.containers import is_expired
from responses_app.store.files import storage

UNAVAILABLE = (
    "This server runs no code: it has no sandbox. The operator switches the code interpreter on with RESPONSES_SANDBOX_URL, "
    "and `manage.py doctor` says what a sandbox needs."
)


def has_sandbox() -> bool:
    """Return whether the settings name a sandbox."""
    return bool(settings.RESPONSES_SANDBOX_URL)


def open_sandbox() -> Sandbox:
    """Connect to the sandbox of the settings. Raises SandboxUnavailable without one."""
    if not has_sandbox():
        raise SandboxUnavailable(UNAVAILABLE)
    return SandboxClient(settings.RESPONSES_SANDBOX_URL, settings.RESPONSES_SANDBOX_TOKEN)


async def end_container(container: Container) -> None:
    """End a container in the sandbox. A sandbox that is not reachable loses the container at its expiry."""
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
async def _sandbox_of(container: Container) -> AsyncIterator[Sandbox | None]:
    """Connect to the sandbox of a container; None if no code can run in the container now, as a connection starts the sandbox.

    The errors of a sandbox that does not have the container or the file end the context.
    """
    has_run = container.last_active_at > container.created_at
    if not has_sandbox() or not has_run or is_expired(container, timezone.now()):
        yield None
        return
    sandbox = open_sandbox()
    try:
        with suppress(SandboxUnavailable, ContainerExpired, FileMissing, InvalidPath):
            yield sandbox
    finally:
        await sandbox.close()
