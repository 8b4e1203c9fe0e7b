"""Connections to the sandbox of the settings, and changes of containers from outside of a run."""

from __future__ import annotations

from contextlib import suppress

from django.conf import settings

from responses_app.models import ContainerFile
from responses_app.sandbox.base import ContainerExpired, FileMissing, InvalidPath, Sandbox, SandboxUnavailable
from responses_app.sandbox.client import SandboxClient
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


async def end_container(uid: str) -> None:
    """End a container in the sandbox. A sandbox that is not reachable loses the container at its expiry."""
    if not has_sandbox():
        return
    sandbox = open_sandbox()
    try:
        with suppress(SandboxUnavailable, ContainerExpired):
            await sandbox.delete(uid)
    finally:
        await sandbox.close()


async def put_file(uid: str, file: ContainerFile) -> None:
    """Write a stored file to a container in the sandbox, if the container runs. A later start of the container writes all files."""
    if not has_sandbox():
        return
    sandbox = open_sandbox()
    try:
        with suppress(SandboxUnavailable, ContainerExpired):
            await sandbox.status(uid)
            await sandbox.put_file(uid, file.path, await storage.open_chunks(file.storage_name))
    finally:
        await sandbox.close()


async def delete_file(uid: str, path: str) -> None:
    """Delete a file of a container in the sandbox, if the container runs and has the file."""
    if not has_sandbox():
        return
    sandbox = open_sandbox()
    try:
        with suppress(SandboxUnavailable, ContainerExpired, FileMissing, InvalidPath):
            await sandbox.delete_file(uid, path)
    finally:
        await sandbox.close()
