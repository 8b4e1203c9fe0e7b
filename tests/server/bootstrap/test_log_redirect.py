"""Root cause in the log of an engine that did not start."""

from __future__ import annotations

from pathlib import Path

import pytest

from responses_app.server.bootstrap.log_redirect import find_root_cause

LOG = """
(EngineCore pid=7) ERROR 11-26 13:00:00 [core.py:900] EngineCore failed to start.
(EngineCore pid=7) Traceback (most recent call last):
(EngineCore pid=7) ERROR 11-26 13:00:00 [core.py:900] ValueError: The KV cache is too small.
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}
"""


@pytest.mark.parametrize(("log", "cause"), [(LOG, "The KV cache is too small."), ("ready\n", None), ("", None)])
def test_root_cause_is_the_exception_that_points_to_no_other(tmp_path: Path, log: str, cause: str | None) -> None:
    file = tmp_path / "engine.log"
    file.write_text(log)
    assert find_root_cause(file) == cause
