"""One server for all tests of answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.contract_server import Address, demo_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """Run a server with both demo models."""
    with demo_server(tmp_path_factory.mktemp("answers")) as address:
        yield address
