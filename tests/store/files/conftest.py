"""Clients of the Files API and the Containers API of a real server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import openai
import pytest

if TYPE_CHECKING:
    from tests.support.server.serve_command import Server


@pytest.fixture
def client(shared: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{shared.url}/v1", api_key=shared.key, max_retries=0) as client:
        yield client
        for file in client.files.list():
            client.files.delete(file.id)
        for container in client.containers.list():
            client.containers.delete(container.id)


@pytest.fixture(scope="session")
def stranger_key(shared: Server) -> str:
    """Return a key of another project."""
    return shared.manage("createkey", "stranger", "--project", "stranger").split()[-1]


@pytest.fixture
def stranger(shared: Server, stranger_key: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{shared.url}/v1", api_key=stranger_key, max_retries=0) as client:
        yield client
