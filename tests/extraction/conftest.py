"""A runner of the sandbox without packages for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.sandbox.runner import Runner, runner


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    with runner(tmp_path_factory.mktemp("sandbox")) as started:
        yield started
