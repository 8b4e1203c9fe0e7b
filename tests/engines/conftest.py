"""Fixtures of real engines. An engine takes half a minute to start, so a module shares an engine and its event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.engines import image_checkpoint, text_checkpoint

# Rewrite the assertions of these modules like those of test modules.
pytest.register_assert_rewrite("tests.support.engines.requirements", "tests.support.engines.image_requirements")


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create the directory of a model of texts."""
    return text_checkpoint.write(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create the directory of a model that accepts images."""
    return image_checkpoint.write(tmp_path_factory.mktemp("seeing"))
