"""Clients that cannot be installed: their tests are skipped, and fail in continuous integration."""

from __future__ import annotations

import pytest

from tests.support.clients.drive import give_up


@pytest.mark.parametrize(
    ("environ", "outcome"),
    [({"CI": "true"}, pytest.fail.Exception), ({"CI": "false"}, pytest.skip.Exception), ({}, pytest.skip.Exception)],
)
def test_missing_client_fails_in_continuous_integration(environ: dict[str, str], outcome: type[BaseException]) -> None:
    with pytest.raises(outcome, match="no node clients"):
        give_up("no node clients", environ)
