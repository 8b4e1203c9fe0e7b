"""Tests of responses_app/observability/engine_log.py."""

from __future__ import annotations

import pytest

from responses_app.observability.engine_log import EngineLog

AWAY = "the engine gpu-1:8000 of chat does not answer; requests get 503, running responses wait"


def test_only_engine_of_a_model_is_logged_at_each_change(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "responses.engines")
    log = EngineLog()
    for is_up in (True, False, False, True, True):
        log.engines_checked({("chat", "gpu-1:8000"): is_up})
    assert caplog.messages == [AWAY, "the engine gpu-1:8000 of chat answers again"]


def test_engine_that_is_away_at_the_start_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    EngineLog().engines_checked({("chat", "gpu-1:8000"): False, ("small", "local"): True})
    assert caplog.messages == [AWAY]


def test_several_engines_of_a_model_are_left_to_their_pool(caplog: pytest.LogCaptureFixture) -> None:
    EngineLog().engines_checked({("chat", "gpu-1:8000"): False, ("chat", "gpu-2:8000"): True})
    assert caplog.messages == []
