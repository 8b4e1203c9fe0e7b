"""Files of metrics have all of their blocks, so that a full disk is an error and not the end of the process."""

from __future__ import annotations

import resource
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from responses_app.installation.data_dir import ROOT
from responses_app.observability.value_files import INITIAL_BYTES, ReservedValues

COUNT = 500
PROCESS = """
import sys
from pathlib import Path
from responses_app.observability import prometheus
prometheus.use_files(Path(sys.argv[1]))
prometheus.PrometheusObserver(["m"]).taken_over()
"""


def is_reserved(file: Path) -> bool:
    """Return whether the file has no holes."""
    state = file.stat()
    return state.st_size >= INITIAL_BYTES and state.st_blocks * 512 >= state.st_size


def fill(values: ReservedValues) -> None:
    """Write more values than a new file holds."""
    for number in range(COUNT):
        values.write_value(f"{number:04}{'n' * 300}", float(number), 0.0)  # type: ignore[no-untyped-call]


def test_files_of_a_process_are_reserved(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", PROCESS, str(tmp_path)], cwd=ROOT, check=True)
    files = list(tmp_path.glob("*.db"))
    assert files
    assert all(is_reserved(file) for file in files)


def test_file_that_grows_is_reserved_and_keeps_its_values(tmp_path: Path) -> None:
    file = tmp_path / "counter_0.db"
    values = ReservedValues(str(file))
    fill(values)
    values.close()  # type: ignore[no-untyped-call]
    assert file.stat().st_size > INITIAL_BYTES
    assert is_reserved(file)
    with closing(ReservedValues(str(file))) as again:
        read = again.read_all_values()  # type: ignore[no-untyped-call]
        assert [value for _, value, _ in read] == [float(number) for number in range(COUNT)]


def test_file_that_cannot_grow_is_an_error(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with closing(ReservedValues(str(tmp_path / "counter_0.db"))) as values:
        resource.setrlimit(resource.RLIMIT_FSIZE, (INITIAL_BYTES, before[1]))
        try:
            with pytest.raises(OSError, match="File too large"):
                fill(values)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
