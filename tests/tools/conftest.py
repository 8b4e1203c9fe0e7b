"""Event loop of the tests with a client of the MCP SDK, which runs on anyio."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
