"""Drivers of client programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import pytest

LIMIT_S = 300
Drive = Callable[[str, str], dict[str, Any]]


def give_up(reason: str, environ: Mapping[str, str]) -> NoReturn:
    """Skip the test for this reason; fail in continuous integration, where `CI` is `true`."""
    if environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
