"""Copy of Postgres's programs for its account: complete, named by content, in a folder that only root can change."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from shutil import rmtree

import pytest

from responses_app.installation.data_dir import ROOT
from responses_app.server.postgres.account import Account
from responses_app.server.postgres.programs import INSTALLED, NoPrograms, _can_run, _copy_in, _files, program_folder
from tests.support.server import closed_folders as closed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="root alone needs a copy")
NOBODY = Account(65534, 65534)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="verbatim-programs-"))
    folder.chmod(0o755)
    yield folder
    rmtree(folder)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = closed.packages(tmp_path / "site")
    monkeypatch.syspath_prepend(folder)
    return folder


def _copy(place: Path, site: Path) -> Path:
    return _copy_in(place, site, NOBODY)


def test_account_runs_the_copy_and_not_the_original(site: Path, open_folder: Path) -> None:
    assert not _can_run(site, NOBODY)
    copy = _copy(open_folder / "copies", site)
    assert _can_run(copy, NOBODY)
    assert all((copy / file).read_bytes() == (site / file).read_bytes() for file in _files(site))
    assert {path.lstat().st_uid for path in (copy, *copy.rglob("*"))} == {0}
    assert not [path for path in copy.rglob("*") if path.stat().st_mode & 0o022]


def test_copy_is_readable_with_a_strict_umask(site: Path, open_folder: Path) -> None:
    before = os.umask(0o077)
    try:
        assert _can_run(_copy(open_folder / "copies", site), NOBODY)
    finally:
        os.umask(before)


def test_copy_is_made_once_per_content(site: Path, open_folder: Path) -> None:
    place = open_folder / "copies"
    first = _copy(place, site)
    made = first.stat().st_ctime_ns
    assert _copy(place, site) == first
    assert first.stat().st_ctime_ns == made
    (site / INSTALLED / "share" / "another").write_text("version")
    second = _copy(place, site)
    assert second != first
    assert set(place.iterdir()) == {first, second}


def test_a_copy_that_lacks_a_file_is_made_again(site: Path, open_folder: Path) -> None:
    copy = _copy(open_folder / "copies", site)
    (copy / INSTALLED / "bin" / "postgres").unlink()
    assert _copy(open_folder / "copies", site) == copy
    assert (copy / INSTALLED / "bin" / "postgres").exists()
    assert list((open_folder / "copies").iterdir()) == [copy]


def test_starts_at_the_same_moment_make_one_copy(site: Path, open_folder: Path) -> None:
    place = open_folder / "copies"
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        copies = set(pool.map(_copy, [place] * 4, [site] * 4, timeout=120))
    assert list(place.iterdir()) == list(copies)


def test_remains_of_a_killed_start_are_removed_later(site: Path, open_folder: Path) -> None:
    place = open_folder / "copies"
    place.mkdir()
    for name, age in ((".new-young", 10), (".new-old", 7200)):
        (place / name).mkdir()
        now = (place / name).stat().st_mtime
        os.utime(place / name, (now - age, now - age))
    copy = _copy(place, site)
    assert {path.name for path in place.iterdir()} == {copy.name, ".new-young"}


def _link(place: Path, mine: Path) -> None:
    mine.mkdir()
    place.symlink_to(mine)


def _foreign(place: Path, _: Path) -> None:
    place.mkdir()
    NOBODY.chown(place)


def _open_to_all(place: Path, _: Path) -> None:
    place.mkdir()
    place.chmod(0o1777)


def _below_open(place: Path, _: Path) -> None:
    place.parent.chmod(0o777)


def _file(place: Path, _: Path) -> None:
    place.write_text("")


@pytest.mark.parametrize("prepare", [_link, _foreign, _open_to_all, _below_open, _file])
def test_folder_that_others_could_change_is_not_used(site: Path, open_folder: Path, prepare: object) -> None:
    assert callable(prepare)
    (open_folder / "near").mkdir()
    place = open_folder / "near" / "copies"
    prepare(place, open_folder / "mine")
    with pytest.raises(NoPrograms, match="root alone can change"):
        program_folder(NOBODY, [place])
    good = open_folder / "good"
    assert program_folder(NOBODY, [place, good]).is_relative_to(good)
    assert not (open_folder / "mine").exists() or not list((open_folder / "mine").iterdir())


def test_folder_that_is_closed_to_the_account_is_not_used(site: Path, tmp_path: Path, open_folder: Path) -> None:
    with pytest.raises(NoPrograms, match="programs cannot be run from there"):
        program_folder(NOBODY, [tmp_path / "copies"])
    assert not list((tmp_path / "copies").iterdir())


def test_root_without_setuid_is_reported(site: Path, tmp_path: Path) -> None:
    """As in a container without CAP_SETUID, where nothing is copied."""
    code = (
        "import sys; from pathlib import Path; from responses_app.server.postgres import programs; "
        "from responses_app.server.postgres.account import Account; "
        "programs.program_folder(Account(65534, 65534), [Path(sys.argv[1])])"
    )
    command = ["setpriv", "--bounding-set=-setuid", sys.executable, "-c", code, str(tmp_path / "copies")]
    environ = {**os.environ, "PYTHONPATH": f"{site}:{ROOT}"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert "root may not run Postgres under another account here (uid 65534: Operation not permitted)" in done.stderr
    assert not (tmp_path / "copies").exists()


def test_readable_programs_are_not_copied(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = closed.packages(open_folder / "site", mode=0o755)
    monkeypatch.syspath_prepend(site)
    assert program_folder(NOBODY, []) == site / INSTALLED / "bin"
    assert program_folder(None, []) == site / INSTALLED / "bin"
