"""Fixtures for the checkpoints of families."""

from __future__ import annotations

import os

import pytest

from tests.support.dialects.families.open_families import OpenFamilies


@pytest.fixture(scope="session")
def families(tmp_path_factory: pytest.TempPathFactory) -> OpenFamilies:
    """Return the checkpoints of all families, written when first used."""
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    return OpenFamilies(tmp_path_factory.mktemp("families"))
