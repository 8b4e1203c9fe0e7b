"""Command line of `manage.py`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from responses_app.installation.data_dir import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["at the end", "at once"])
def test_a_reader_that_has_ended_makes_no_traceback(unbuffered: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    environ = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    command = [sys.executable, str(ROOT / "manage.py"), "diffsettings"]
    done = subprocess.run(command, env=environ, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")
