"""Decode pool: images are checked and shrunk in worker processes, so decoding never blocks the server."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections import OrderedDict
from dataclasses import dataclass

from responses_app.images import decode as images_decode
from responses_app.images.decode import ImageSize, InvalidImage
from responses_app.workers.limits import LimitExceeded, Limits, PoolBusy, WorkerDied
from responses_app.workers.pool import Pool

# The slowest allowed image, of 50 million pixels, takes about three seconds and 700 MB.
LIMITS = Limits(cpu_s=10, wall_s=40.0, memory_bytes=1280 << 20)
# Each project decodes one image at a time. The remaining processes serve other projects.
PROCESSES = min(max(os.cpu_count() or 1, 2), 4)
MAX_CACHED = 4096

_pool = Pool("responses_app.images.decode_job:handle", LIMITS, size=PROCESSES, per_owner=1)


class DecoderBusy(RuntimeError):
    """Too many images of the project wait to be decoded."""


@dataclass(frozen=True, slots=True)
class _Job:
    """A call of the worker process: maximum width and height of the result, zero to check the image only."""

    side: int
    data: bytes

    def payload(self) -> bytes:
        """Encode the job for the worker process."""
        return self.side.to_bytes(4, "big") + self.data


async def check(project: str, data: bytes) -> ImageSize:
    """Check an image by decoding, and cache the size by content hash. Raises InvalidImage, DecoderBusy."""
    images_decode.check_length(data)
    digest = await asyncio.to_thread(_digest, data)
    size = _size_cache.get(digest)
    if size is None:
        answer = await _run_job(project, _Job(0, data))
        size = ImageSize(int.from_bytes(answer[:4], "big"), int.from_bytes(answer[4:8], "big"))
        _size_cache.put(digest, size)
    return size


async def shrink(project: str, data: bytes, side: int) -> bytes:
    """Shrink a checked image to a PNG of at most `side` pixels per side; return smaller images unchanged.

    Raises InvalidImage, DecoderBusy.
    """
    return await _run_job(project, _Job(side, data)) or data


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


async def _run_job(project: str, job: _Job) -> bytes:
    try:
        answer = await _pool.run(project, job.payload())
    except LimitExceeded as error:
        raise InvalidImage(f"The image takes too long to decode ({error}).", "image_too_large") from error
    except WorkerDied as error:
        raise InvalidImage("The image cannot be decoded.", "image_parse_error") from error
    except PoolBusy as error:
        raise DecoderBusy(f"Images of this project are being decoded: {error}. Try again in a moment.") from error
    if answer[:1] == b"!":
        code, _, message = answer[1:].decode().partition(" ")
        raise InvalidImage(message, code)
    return answer[1:]


class _SizeCache:
    """LRU cache of image sizes by content hash. Rejected images are not cached."""

    def __init__(self) -> None:
        self._sizes: OrderedDict[bytes, ImageSize] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, digest: bytes) -> ImageSize | None:
        """Return the cached size and mark the entry as most recently used."""
        with self._lock:
            if digest in self._sizes:
                self._sizes.move_to_end(digest)
            return self._sizes.get(digest)

    def put(self, digest: bytes, size: ImageSize) -> None:
        """Add a size; evict the least recently used entry above MAX_CACHED."""
        with self._lock:
            self._sizes[digest] = size
            if len(self._sizes) > MAX_CACHED:
                self._sizes.popitem(last=False)


_size_cache = _SizeCache()
