"""Long computations of one request in threads of their own, one of a project at a time.

The default threads are for work of some milliseconds that every request needs. Projects take turns here, so that many long requests of one
of them delay the long requests of another by one computation at most, and short requests not at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from responses_app.errors import Busy

T = TypeVar("T")

THREADS = 2
WAIT_LIMIT_S = 60.0
# What is less takes some ten milliseconds: bytes of JSON or characters of text, items of a context, tools.
LONG_TEXT = 1 << 18
LONG_ITEMS = 1000
LONG_TOOLS = 128

_threads = ThreadPoolExecutor(THREADS, "long")
_locks: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakValueDictionary[str, asyncio.Lock]] = WeakKeyDictionary()


async def run(project: str, is_long: bool, function: Callable[[], T], stop: Callable[[], None] | None = None) -> T:
    """The result of a function that is called in a thread; `stop` is called if nobody waits for it any more. Raises Busy.

    A long one waits until no other of the project runs.
    """
    if not is_long:
        return await asyncio.to_thread(function)
    lock = _lock(project)
    try:
        async with asyncio.timeout(WAIT_LIMIT_S):
            await lock.acquire()
    except TimeoutError:
        raise Busy("Other long requests of this project are being read. Try again in a moment.") from None
    future = _threads.submit(function)
    # A thread that runs cannot be cancelled: its project waits until it has ended, whoever has left.
    future.add_done_callback(_releasing(lock))
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        if stop is not None:
            stop()
        raise


def _lock(project: str) -> asyncio.Lock:
    locks = _locks.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
    lock = locks.get(project)
    if lock is None:
        lock = locks[project] = asyncio.Lock()
    return lock


def _releasing(lock: asyncio.Lock) -> Callable[[Future[T]], None]:
    loop = asyncio.get_running_loop()

    def release(_: Future[T]) -> None:
        with suppress(RuntimeError):  # The loop may be closed by now.
            loop.call_soon_threadsafe(lock.release)

    return release
