"""Containers and their files on a real server, with the openai package."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import openai
import pytest

from tests.support import plain_http

if TYPE_CHECKING:
    from tests.support.server.serve_command import Server

DATA = b"name,size\nOslo,1\n"


def test_container_is_created_listed_and_deleted(client: openai.OpenAI) -> None:
    made = client.containers.create(name="work", memory_limit="4g", expires_after={"anchor": "last_active_at", "minutes": 10})
    assert (made.name, made.status, made.memory_limit, made.object) == ("work", "running", "4g", "container")
    assert made.expires_after is not None
    assert made.expires_after.minutes == 10
    assert client.containers.retrieve(made.id).id == made.id
    assert [one.id for one in client.containers.list(name="work")] == [made.id]
    assert list(client.containers.list(name="other")) == []
    client.containers.delete(made.id)
    with pytest.raises(openai.NotFoundError):
        client.containers.retrieve(made.id)


def test_pages_of_containers_follow_each_other(client: openai.OpenAI) -> None:
    made = [client.containers.create(name=str(number)).id for number in range(5)]
    assert [one.id for one in client.containers.list(limit=2, order="asc")] == made
    assert [one.id for one in client.containers.list(limit=2)] == made[::-1]


def test_file_is_uploaded_read_replaced_and_deleted(client: openai.OpenAI, shared: Server) -> None:
    container = client.containers.create(name="work")
    file = client.containers.files.create(container.id, file=("../cities.csv", DATA))
    assert (file.path, file.bytes, file.source) == ("/mnt/data/cities.csv", len(DATA), "user")
    assert client.containers.files.content.retrieve(file.id, container_id=container.id).read() == DATA
    again = client.containers.files.create(container.id, file=("cities.csv", b"new"))
    assert again.id == file.id
    assert client.containers.files.content.retrieve(file.id, container_id=container.id).read() == b"new"
    assert [one.id for one in client.containers.files.list(container.id)] == [file.id]
    client.containers.files.delete(file.id, container_id=container.id)
    with pytest.raises(openai.NotFoundError):
        client.containers.files.retrieve(file.id, container_id=container.id)
    assert not list((shared.folder / "files").glob("container-*"))


def test_uploaded_files_are_copied_into_a_container(client: openai.OpenAI) -> None:
    upload = client.files.create(file=("cities.csv", DATA), purpose="assistants")
    container = client.containers.create(name="work", file_ids=[upload.id])
    other = client.files.create(file=("other.txt", b"x"), purpose="assistants")
    added = client.containers.files.create(container.id, file_id=other.id)
    client.files.delete(upload.id)
    client.files.delete(other.id)
    assert added.path == "/mnt/data/other.txt"
    paths = sorted(file.path for file in client.containers.files.list(container.id))
    assert paths == ["/mnt/data/cities.csv", "/mnt/data/other.txt"]


def test_containers_of_other_projects_are_not_found(client: openai.OpenAI, stranger: openai.OpenAI) -> None:
    container = client.containers.create(name="work")
    file = client.containers.files.create(container.id, file=("a.txt", b"x"))
    assert list(stranger.containers.list()) == []
    with pytest.raises(openai.NotFoundError):
        stranger.containers.delete(container.id)
    with pytest.raises(openai.NotFoundError):
        stranger.containers.files.content.retrieve(file.id, container_id=container.id)
    with pytest.raises(openai.NotFoundError):
        stranger.containers.files.create(container.id, file=("a.txt", b"y"))


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "x", "memory_limit": "2g"}, "memory_limit"),
        ({"name": "x", "expires_after": {"anchor": "created_at", "minutes": 1}}, "expires_after.anchor"),
        ({"name": "x", "file_ids": ["file-unknown"]}, "file_ids[0]"),
        ({"name": "x", "network_policy": {"type": "allowlist", "allowed_domains": ["a.example"]}}, "network_policy.type"),
        ({"name": "x", "skills": [{"type": "skill_reference"}]}, "skills"),
        ({"name": "x", "colour": "red"}, "colour"),
    ],
)
def test_wrong_field_is_named(shared: Server, body: object, param: str) -> None:
    headers = {"Authorization": f"Bearer {shared.key}"}
    answer = plain_http.post(f"{shared.url}/v1/containers", json=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


def test_upload_without_a_file_is_named(client: openai.OpenAI, shared: Server) -> None:
    container = client.containers.create(name="work")
    headers = {"Authorization": f"Bearer {shared.key}"}
    answer = plain_http.post(f"{shared.url}/v1/containers/{container.id}/files", json={}, headers=headers)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "file")
    assert not [name for name in os.listdir(shared.folder / "uploads") if name.startswith("container-")]
