"""Images checked and reduced in worker processes, so that none of them delays anything else."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections import OrderedDict
from dataclasses import dataclass

from responses_app.images import decode as images_decode
from responses_app.images.decode import MOST_BYTES, InvalidImage, Size
from responses_app.workers.limits import LimitExceeded, Limits, PoolBusy, WorkerDied
from responses_app.workers.pool import Pool

# The slowest image that is allowed, of 50 million pixels, takes about three seconds and 700 MB.
LIMITS = Limits(cpu_s=10, wall_s=40.0, memory_bytes=1280 << 20)
# One project decodes one image at a time. Others find a process that is free.
PROCESSES = min(max(os.cpu_count() or 1, 2), 4)
MOST_REMEMBERED = 4096

_pool = Pool("responses_app.images.decode_job:handle", LIMITS, size=PROCESSES, per_owner=1)


class DecoderBusy(RuntimeError):
    """Too many images of the project wait to be decoded."""


@dataclass(frozen=True, slots=True)
class _Job:
    """One call of the worker process: the width and height of the result, zero to check the image only."""

    side: int
    data: bytes

    def payload(self) -> bytes:
        """The bytes that are sent."""
        return self.side.to_bytes(4, "big") + self.data


async def check(project: str, data: bytes) -> Size:
    """See that an image can be decoded. The result is remembered by its content. Raises BadImage, DecoderBusy."""
    if len(data) > MOST_BYTES or not data:
        return images_decode.check(data)
    digest = await asyncio.to_thread(_digest, data)
    known = _remembered.get(digest)
    if known is None:
        answer = await _ask(project, _Job(0, data))
        known = Size(int.from_bytes(answer[:4], "big"), int.from_bytes(answer[4:8], "big"))
        _remembered.put(digest, known)
    return known


async def reduced(project: str, data: bytes, side: int) -> bytes:
    """An image that was checked, as a PNG with at most `side` pixels on each side; itself if it is small. Raises BadImage, DecoderBusy."""
    return await _ask(project, _Job(side, data)) or data


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


async def _ask(project: str, job: _Job) -> bytes:
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


class _Remembered:
    """A cache of the newest sizes by the hash of the image. Of images that were refused nothing is kept."""

    def __init__(self) -> None:
        self._sizes: OrderedDict[bytes, Size] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, digest: bytes) -> Size | None:
        """The size, which is then the newest."""
        with self._lock:
            if digest in self._sizes:
                self._sizes.move_to_end(digest)
            return self._sizes.get(digest)

    def put(self, digest: bytes, size: Size) -> None:
        """Keep a size, and forget the oldest if there are too many."""
        with self._lock:
            self._sizes[digest] = size
            if len(self._sizes) > MOST_REMEMBERED:
                self._sizes.popitem(last=False)


_remembered = _Remembered()
