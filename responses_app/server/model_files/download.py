"""Download of the files of a repository into the shared cache: resumed where it stopped, and checked by hash."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO

from responses_app.server.model_files.errors import CannotServe
from responses_app.server.model_files.hub_errors import explained
from responses_app.server.model_files.repository import RepoFile, Repository, cache, record
from responses_app.server.model_files.retries import Retries, is_passing_status
from responses_app.server.model_files.selection import WEIGHT_SUFFIXES
from responses_app.server.model_files.sizes import size_text, time_text

THREADS = 4
HASH_BLOCK = 2**22
# Seconds without a byte after which a connection counts as broken.
SILENCE_LIMIT_S = 30.0
LOCK_POLL_S = 1.0
# Seconds over which the rate is measured.
RATE_WINDOW_S = 10.0


class DownloadStopped(Exception):
    """Download that was stopped from outside."""


class Download:
    """Download of `files` of a repository; `run` blocks, `stop` ends it from another thread, `note` gets the pauses."""

    def __init__(
        self,
        repository: Repository,
        files: Sequence[RepoFile],
        clock: Callable[[], float] = time.monotonic,
        note: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.repository = repository
        self.files = repository.missing(tuple(files))
        self._all_paths = [file.path for file in files]
        self.total = sum(file.size for file in self.files)
        self.weights_size = sum(file.size for file in files if file.path.endswith(WEIGHT_SUFFIXES))
        self._done: dict[str, int] = {file.path: _partial_size(repository, file) for file in self.files}
        self._clock, self._samples = clock, deque[tuple[float, int]]()
        self._lock, self._stopped = threading.Lock(), threading.Event()
        self.checking, self._pause, self._report_pause = "", "", note
        self._is_complete = not self.files

    @property
    def done(self) -> int:
        """Return the bytes that are there, of `total`."""
        return sum(self._done.values())

    def get_percent(self) -> int:
        """Return the share that is there, in percent; 100 once all files are checked."""
        return 100 if self._is_complete else min(100 * self.done // max(self.total, 1), 99)

    def detail(self) -> str:
        """Return the progress for a terminal: a bar, bytes, rate and remaining time."""
        with self._lock:
            rate = self._rate()
        done, percent = self.done, self.get_percent()
        bar = f"[{'#' * (percent // 5)}{'.' * (20 - percent // 5)}] {percent} % of {size_text(self.total)}"
        if done >= self.total and self.checking:
            return f"{bar}, checking {self.checking}"
        if rate:
            return f"{bar}, {size_text(rate)}/s, {time_text((self.total - done) / rate)} left"
        return f"{bar}, {self._pause or 'waiting for bytes'}"

    def run(self) -> None:
        """Download and check all files. Raises CannotServe, or DownloadStopped. A later download goes on with what is there."""
        with explained(self.repository.name, self.repository.revision):
            self._run_threads()
            record(self.repository, self._all_paths, Retries(self._note))
        self._is_complete = True

    def stop(self) -> None:
        """End the download at the next bytes."""
        self._stopped.set()

    def _note(self, pause: str) -> None:
        self._pause = pause
        self._report_pause(pause)

    def _run_threads(self) -> None:
        threads = ThreadPoolExecutor(THREADS, "download")
        try:
            futures = [threads.submit(self._fetch, file) for file in sorted(self.files, key=lambda file: file.size)]
            for future in wait(futures, return_when=FIRST_EXCEPTION).done:
                future.result()
        finally:
            # The other threads end at their next bytes.
            self._stopped.set()
            threads.shutdown(wait=False, cancel_futures=True)

    def _fetch(self, file: RepoFile) -> None:
        blob = self.repository.storage / "blobs" / file.etag
        blob.parent.mkdir(parents=True, exist_ok=True)
        with self._locked(file):
            if not blob.exists():
                self._fetch_blob(file, blob)
        self._done[file.path] = file.size
        _link(blob, self.repository.snapshot / file.path)

    def _fetch_blob(self, file: RepoFile, blob: Path) -> None:
        """Download a file until the hash is right, twice at most."""
        partial = _partial(self.repository, file)
        for attempt in range(2):
            self._transfer(file, partial)
            self.checking = file.path
            # Some mirrors name other hashes than Git's for small files, which then must arrive twice.
            if has_hash(partial, file) or (attempt and file.sha256 is None):
                partial.replace(blob)
                return
            partial.unlink()
            self._done[file.path] = 0
        raise CannotServe(
            f"{self.repository.name}: {file.path} arrives with other content than the hub's hash names: the hub, a mirror or a "
            "proxy changes it. Try again, or set HF_ENDPOINT to another mirror."
        )

    def _transfer(self, file: RepoFile, partial: Path) -> None:
        """Download the bytes that are missing, over as many connections as needed."""
        import httpx2
        from huggingface_hub.errors import HfHubHTTPError

        # Every connection that brings bytes begins with the first pause again.
        retries = Retries(self._note, self._stopped)
        with partial.open("ab") as out:
            while (begin := _size(out)) < file.size:
                try:
                    if not self._receive(file, out):
                        return
                    error: Exception | None = None
                except (httpx2.TransportError, HfHubHTTPError) as failed:
                    if isinstance(failed, HfHubHTTPError) and not is_passing_status(failed):
                        raise
                    error = failed
                if _size(out) > begin:
                    retries.reset()
                    if error is None:
                        continue
                error = error or OSError(
                    f"the hub sends only {begin:,} of {file.size:,} bytes of {file.path}. Try again, or set HF_ENDPOINT."
                )
                if not retries.wait_after(error):
                    raise DownloadStopped
            if _size(out) > file.size:
                out.truncate(0)

    def _receive(self, file: RepoFile, out: BinaryIO) -> bool:
        """Append what one connection sends to `out`. Return False if the hub's file ends before `out`."""
        from huggingface_hub import constants, hf_hub_url
        from huggingface_hub.utils._headers import build_hf_headers
        from huggingface_hub.utils._http import get_session, hf_raise_for_status

        begin = _size(out)
        url = hf_hub_url(self.repository.name, file.path, revision=self.repository.commit, endpoint=constants.ENDPOINT)
        headers = build_hf_headers() | {"Accept-Encoding": "identity"} | ({"Range": f"bytes={begin}-"} if begin else {})
        with get_session().stream("GET", url, headers=headers, timeout=SILENCE_LIMIT_S) as response:
            if begin and response.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                return False
            hf_raise_for_status(response)
            if begin and response.status_code == 200:  # The server ignores ranges.
                out.seek(0)
                out.truncate()
                self._done[file.path] = 0
            for block in response.iter_raw():
                if self._stopped.is_set():
                    raise DownloadStopped
                out.write(block)
                self._count(file, _size(out))
                if _size(out) > file.size:
                    break
        return True

    def _count(self, file: RepoFile, size: int) -> None:
        with self._lock:
            self._done[file.path], self._pause = min(size, file.size), ""
            now = self._clock()
            self._samples.append((now, self.done))
            while now - self._samples[0][0] > RATE_WINDOW_S:
                self._samples.popleft()

    def _rate(self) -> float:
        """Return the bytes per second of the last seconds, 0 if none has arrived in these."""
        if not self._samples or self._clock() - self._samples[-1][0] > RATE_WINDOW_S:
            return 0.0
        (began, first), (_, last) = self._samples[0], self._samples[-1]
        return max(last - first, 0) / max(self._clock() - began, 0.001)

    @contextmanager
    def _locked(self, file: RepoFile) -> Iterator[None]:
        """Hold the lock of a file, which other programs take as well for a download into the same cache."""
        from huggingface_hub.utils._fixes import WeakFileLock

        path = cache() / ".locks" / self.repository.storage.name / f"{file.etag}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            if self._stopped.is_set():
                raise DownloadStopped
            lock = WeakFileLock(path, timeout=LOCK_POLL_S)
            with suppress(TimeoutError):
                lock.__enter__()
                break
        try:
            yield
        finally:
            lock.__exit__(None, None, None)


def has_hash(path: Path, file: RepoFile) -> bool:
    """Check the content of `path` by its SHA-256, or by its Git id."""
    if path.stat().st_size != file.size:
        return False
    digest = hashlib.sha256() if file.sha256 else hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)
    with path.open("rb") as opened:
        while block := opened.read(HASH_BLOCK):
            digest.update(block)
    return digest.hexdigest() == file.etag


def _size(out: BinaryIO) -> int:
    """Return the bytes of a file that is open at the end."""
    return out.tell()


def _partial(repository: Repository, file: RepoFile) -> Path:
    return repository.storage / "blobs" / f"{file.etag}.incomplete"


def _partial_size(repository: Repository, file: RepoFile) -> int:
    if (repository.storage / "blobs" / file.etag).exists():
        return file.size
    try:
        return min(_partial(repository, file).stat().st_size, file.size)
    except OSError:
        return 0


def _link(blob: Path, pointer: Path) -> None:
    """Make the file of a snapshot: a relative link to the blob, or the blob itself where links cannot be made."""
    pointer.parent.mkdir(parents=True, exist_ok=True)
    try:
        pointer.symlink_to(os.path.relpath(blob, pointer.parent))
    except FileExistsError:
        return
    except OSError:
        blob.replace(pointer)
