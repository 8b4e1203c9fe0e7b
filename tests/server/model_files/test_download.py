"""Downloads from the model hub: breaks, resumption, hashes, progress."""

from __future__ import annotations

import hashlib
import itertools
import threading
from pathlib import Path

import pytest

from responses_app.server.model_files.download import Download, DownloadStopped
from responses_app.server.model_files.errors import CannotServe
from responses_app.server.model_files.repository import list_repository
from responses_app.server.model_files.retries import MAX_FAILURES
from tests.support.hub.server import ModelHub
from tests.support.manual_clock import ManualClock
from tests.support.waiting import wait_until

WEIGHTS = (bytes(index * index % 251 for index in range(251)) * 3985)[:1_000_000]
FILES = {"config.json": b'{"a": 1}', "model.safetensors": WEIGHTS}


def _download(hub: ModelHub) -> Download:
    if "o/m" not in hub.repositories:
        hub.add("o/m", FILES)
    listed = list_repository("o/m", "main")
    return Download(listed, listed.files)


def _weights(download: Download) -> bytes:
    return (download.repository.snapshot / "model.safetensors").read_bytes()


def test_download_makes_the_layout_of_the_cache_of_the_hub(hub: ModelHub, cache: Path) -> None:
    download = _download(hub)
    assert (download.total, download.done, download.get_percent()) == (1_000_008, 0, 0)
    download.run()
    assert download.get_percent() == 100
    folder = cache / "models--o--m"
    assert (folder / "refs" / "main").read_text() == hub.repositories["o/m"].commit
    file = folder / "snapshots" / hub.repositories["o/m"].commit / "model.safetensors"
    assert file.is_symlink()
    assert file.resolve() == (folder / "blobs" / hashlib.sha256(WEIGHTS).hexdigest()).resolve()
    assert not list((folder / "blobs").glob("*.incomplete"))


@pytest.mark.parametrize("ignores_ranges", [False, True])
def test_download_goes_on_after_broken_connections(hub: ModelHub, ignores_ranges: bool) -> None:
    hub.cuts, hub.ignores_ranges = [200_000, 300_000], ignores_ranges
    download = _download(hub)
    download.run()
    assert _weights(download) == WEIGHTS
    assert hub.ranges("model.safetensors") == ["", "bytes=200000-", "bytes=300000-" if ignores_ranges else "bytes=500000-"]


def test_download_goes_on_in_the_next_process_where_it_was_stopped(hub: ModelHub) -> None:
    first, blocks = _download(hub), itertools.count()

    def stop_at_the_eighth_block() -> None:
        if next(blocks) == 7:
            wait_until(lambda: first.done > 400_000)
            first.stop()

    hub.before_block = stop_at_the_eighth_block
    with pytest.raises(DownloadStopped):
        first.run()
    hub.before_block = lambda: None
    second = _download(hub)
    assert second.done >= 400_000
    assert 40 <= second.get_percent() < 100
    second.run()
    assert _weights(second) == WEIGHTS
    assert int(hub.ranges("model.safetensors")[-1].removeprefix("bytes=").removesuffix("-")) >= 400_000


def test_download_gives_up_after_connections_without_bytes(hub: ModelHub) -> None:
    hub.cuts = [0] * 50
    with pytest.raises(CannotServe, match=r"^o/m: http://127.0.0.1:\d+ cannot be reached .* Check the connection"):
        _download(hub).run()
    assert len(hub.ranges("model.safetensors")) == MAX_FAILURES


def test_download_goes_on_after_failures_of_the_hub(hub: ModelHub) -> None:
    pauses: list[str] = []
    listed = _download(hub).repository
    download = Download(listed, listed.files, note=pauses.append)
    hub.first_statuses = [503, 429, 500]
    download.run()
    assert _weights(download) == WEIGHTS
    assert sorted(pause.partition("; ")[0].removeprefix(hub.url.removeprefix("http://")) for pause in pauses) == [
        " answers 429",
        " answers 500",
        " answers 503",
    ]


def test_download_refuses_files_with_another_hash(hub: ModelHub) -> None:
    hub.corrupt.add("model.safetensors")
    download = _download(hub)
    with pytest.raises(CannotServe, match=r"model\.safetensors arrives with other content than the hub's hash names"):
        download.run()
    assert hub.ranges("model.safetensors") == ["", ""]
    assert not (download.repository.snapshot / "model.safetensors").exists()


def test_download_replaces_a_partial_file_with_wrong_content(hub: ModelHub, cache: Path) -> None:
    blobs = cache / "models--o--m" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / f"{hashlib.sha256(WEIGHTS).hexdigest()}.incomplete").write_bytes(b"x" * 1000)
    download = _download(hub)
    download.run()
    assert _weights(download) == WEIGHTS
    assert hub.ranges("model.safetensors") == ["bytes=1000-", ""]


def test_two_downloads_of_the_same_model_share_the_files(hub: ModelHub) -> None:
    first, second = _download(hub), _download(hub)
    threads = [threading.Thread(target=one.run) for one in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(hub.ranges("model.safetensors")) == 1
    assert _weights(second) == WEIGHTS


def test_progress_shows_bytes_rate_and_remaining_time(hub: ModelHub) -> None:
    hub.add("o/m", FILES)
    clock = ManualClock()
    listed = list_repository("o/m", "main")
    download = Download(listed, listed.files, clock)
    assert download.detail() == "[....................] 0 % of 1.0 MB, waiting for bytes"
    file = next(file for file in listed.files if file.path == "model.safetensors")
    for size in (0, 250_000, 500_000):
        download._count(file, size)
        clock.now_s += 1
    assert download.detail() == "[#########...........] 49 % of 1.0 MB, 167 kB/s, 3 s left"
    clock.now_s += 10
    assert download.detail() == "[#########...........] 49 % of 1.0 MB, waiting for bytes"
    download._note("the hub answers 503; try 2 of 6 in 1 s")
    assert download.detail() == "[#########...........] 49 % of 1.0 MB, the hub answers 503; try 2 of 6 in 1 s"
