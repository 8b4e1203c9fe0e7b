"""A server of the large checkpoint for all tests of the folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.large_model_server import LargeModelServer, large_model_server


@pytest.fixture(scope="package")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LargeModelServer]:
    """Run the server. Tests may kill its web process and its engine, which the server starts again."""
    with large_model_server(tmp_path_factory.mktemp("proportions")) as running:
        yield running
