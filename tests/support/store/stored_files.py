"""Uploaded files, containers and files of containers in the store."""

from __future__ import annotations

from django.utils import timezone

from responses_app.models import Container, ContainerFile, File, FilePurpose, FileSource
from responses_app.runs.ids import new_id
from responses_app.store.files import container_files, containers, files, pending, storage
from responses_app.store.files.pending import part_path
from responses_app.store.files.quota import MIB

PROJECT = "default"


def upload(name: str = "a.txt", size: int = MIB) -> File:
    """Store an uploaded file."""
    uid = new_id("file-")
    row = File(
        uid=uid,
        project=PROJECT,
        filename=name,
        purpose=FilePurpose.USER_DATA,
        bytes=size,
        created_at=timezone.now(),
        storage_name=uid,
        sha256="",
    )
    with pending.pending(uid):
        part_path(uid).write_bytes(b"x" * size)
        storage.save(part_path(uid), uid)
        files.create(row)
    return row


def new_container(name: str = "work") -> Container:
    """Return the row of a container."""
    now = timezone.now()
    return Container(uid=new_id("cntr_"), project=PROJECT, name=name, created_at=now, last_active_at=now)


def container() -> Container:
    """Create a container."""
    row = new_container()
    assert containers.create(row)
    return row


def add(row: Container, name: str, size: int = MIB) -> ContainerFile:
    """Upload a file to a container."""
    stored = container_files.new_name()
    part_path(stored).write_bytes(b"x" * size)
    path = container_files.work_path(name)
    file = container_files.new_row(row, new_id("cfile_"), path, FileSource.USER, size, stored)
    try:
        container_files.insert(file)
    finally:
        part_path(stored).unlink(missing_ok=True)
    return file


def copy(row: Container, file: File) -> ContainerFile:
    """Copy an uploaded file to a container."""
    return container_files.copy_upload(row, new_id("cfile_"), file)
