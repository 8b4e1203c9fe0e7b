"""Databases of a start that is refused."""

from __future__ import annotations

import pytest
from django.test import override_settings

from responses_app.server.bootstrap import pooler
from responses_app.server.bootstrap.errors import CannotStart


@pytest.mark.django_db
def test_a_way_of_notifications_that_is_away_is_named_with_its_setting() -> None:
    with (
        override_settings(RESPONSES_LISTEN_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none"),
        pytest.raises(CannotStart, match=r"RESPONSES_LISTEN_DATABASE_URL does not answer \(connection failed"),
    ):
        pooler.check()
