"""Engines take half a minute to start: a module shares one, and one event loop with it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.engines import text_checkpoint as checkpoint

# Its assertions are to be explained as those of a test module are.
pytest.register_assert_rewrite("tests.support.engines.requirements")


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model directory."""
    return checkpoint.write(tmp_path_factory.mktemp("tiny"))
