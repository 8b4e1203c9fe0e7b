"""Fixtures of real engines. An engine takes half a minute to start, so a module shares an engine and its event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.engines import text_checkpoint as checkpoint

# Rewrite the assertions of this module like those of test modules.
pytest.register_assert_rewrite("tests.support.engines.requirements")


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a model directory."""
    return checkpoint.write(tmp_path_factory.mktemp("tiny"))
