"""A server and a client for all contract tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from openai import OpenAI

from tests.support.contract_server import Address, demo_server


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """Run a server with both demo models. Both engines use six gigabytes, so the server ends with the last test of the folder."""
    with demo_server(tmp_path_factory.mktemp("contract")) as address:
        yield address


@pytest.fixture
def client(server: Address) -> Iterator[OpenAI]:
    with OpenAI(base_url=server.base, api_key=server.key, max_retries=0) as made:
        yield made
