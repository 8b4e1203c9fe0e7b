"""Clock of a host beside the clock of the database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest

from responses_app.server.bootstrap import shared_resources


@pytest.mark.django_db
def test_clock_ahead_of_the_database_is_named() -> None:
    assert list(shared_resources.warnings()) == []
    with patch.object(shared_resources, "datetime") as clock:
        clock.now.side_effect = lambda _: datetime.now(UTC) + timedelta(hours=1)
        assert any("differs from the clock of Postgres by +3600 s" in sentence for sentence in shared_resources.warnings())
