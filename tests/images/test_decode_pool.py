"""Images in worker processes: the same results as in this process, within limits."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from responses_app.images import decode, decode_pool
from responses_app.images.decode import InvalidImage
from responses_app.workers.pool import Pool
from tests.support.images.encoded_images import drawn
from tests.support.images.expensive_images import progressive, segmented
from tests.support.waiting import eventually


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit the pool to one process, and one second of CPU time per image."""
    limits = replace(decode_pool.LIMITS, cpu_s=1)
    monkeypatch.setattr(decode_pool, "_pool", Pool("responses_app.images.decode_job:handle", limits, size=1))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_a_picture_is_decoded(kind: str) -> None:
    async def run() -> None:
        assert await decode_pool.check("a", drawn(kind)) == (40, 30)
        assert await decode_pool.check("a", drawn(kind)) == (40, 30)
        assert await decode_pool.shrink("a", drawn(kind), 40) == drawn(kind)
        assert decode.check(await decode_pool.shrink("a", drawn(kind), 20)) == (20, 15)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty_image_file"),
        (b"x", "invalid_image_format"),
        (drawn("PNG")[:60], "image_parse_error"),
        (bytes(decode.MAX_BYTES + 1), "image_file_too_large"),
        (progressive(1000), "image_too_large"),
    ],
)
def test_invalid_image_is_refused_with_its_code(data: bytes, code: str) -> None:
    with pytest.raises(InvalidImage) as caught:
        asyncio.run(decode_pool.check("a", data))
    assert caught.value.code == code
    assert str(caught.value)[0].isupper()


def test_the_largest_progressive_picture_is_decoded_within_the_limits() -> None:
    assert asyncio.run(decode_pool.check("a", progressive(20))) == (7000, 7000)


@pytest.mark.usefixtures("hasty")
@pytest.mark.slow
def test_a_picture_that_takes_too_long_is_refused() -> None:
    async def run() -> None:
        with pytest.raises(InvalidImage, match="takes too long to decode") as caught:
            await decode_pool.check("a", slow())
        assert caught.value.code == "image_too_large"
        assert await decode_pool.check("a", drawn("PNG")) == (40, 30)

    asyncio.run(run())


def slow() -> bytes:
    """Create an image whose segments are counted only after some seconds, because Pillow reads them first."""
    return segmented(5_000_000)


def test_neither_the_loop_nor_its_threads_wait_for_a_picture() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        many = [asyncio.create_task(decode_pool.check("a", slow() + bytes([n]))) for n in range(8)]
        try:
            await eventually(lambda: decode_pool._pool._queue.count("a") == 7)
            assert await asyncio.to_thread(str, 1) == "1"
            # Another project uses another process.
            assert await decode_pool.check("b", drawn("PNG", size=(8, 9))) == (8, 9)
            assert not any(task.done() for task in many[1:])
        finally:
            for task in many:
                task.cancel()
            await asyncio.wait(many)
        # No job of the cancelled project is left.
        assert await decode_pool.check("a", drawn("PNG", size=(9, 9))) == (9, 9)

    asyncio.run(run())
