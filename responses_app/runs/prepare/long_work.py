"""Long computations in a separate thread pool. Each project has at most a single computation at a time.

The default threads are for work of some milliseconds that every request needs. Projects take turns in this pool: many long requests
of one project delay the long requests of another by one computation at most, and short requests not at all.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from enum import Enum
from typing import TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from responses_app.errors import RateLimited

T = TypeVar("T")

THREADS = 2
WAIT_LIMIT_S = 60.0
# Work below these sizes takes some milliseconds: bytes of JSON or characters of text, items of a context, parts of these, tools.
LONG_TEXT = 1 << 16
LONG_ITEMS = 250
LONG_PARTS = 1000
LONG_TOOLS = 64
# Work up to these sizes takes less than a millisecond, mostly less than the 0.15 ms of a change of threads.
SHORT_TEXT = 4096
SHORT_ITEMS = 16
SHORT_TOOLS = 4
# Delay between a computation and the return of its memory to the operating system.
TRIM_DELAY_S = 2.0

_threads = ThreadPoolExecutor(THREADS, "long")
_locks: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakValueDictionary[str, asyncio.Lock]] = WeakKeyDictionary()


class WorkSize(Enum):
    """Size of a computation: short work runs on the event loop, medium work in a default thread, long work in the pool."""

    SHORT = "short"
    MEDIUM = "medium"
    LONG = "long"


def size_of(items: Sequence[object], tools: Sequence[object], texts: object) -> WorkSize:
    """Return the size of the work of rendering a turn. Many items, parts or tools are long work, also with short texts."""
    if has_many(items) or len(tools) > LONG_TOOLS:
        return WorkSize.LONG
    characters = text_size(items) + text_size(tools) + text_size(texts)
    if characters > LONG_TEXT:
        return WorkSize.LONG
    is_short = len(items) <= SHORT_ITEMS and len(tools) <= SHORT_TOOLS and characters <= SHORT_TEXT
    return WorkSize.SHORT if is_short else WorkSize.MEDIUM


def has_many(items: Sequence[object]) -> bool:
    """Return True for so many items, or parts in all items, that reading each takes long. Reads no part."""
    if len(items) > LONG_ITEMS:
        return True
    fields = [value for item in items if isinstance(item, dict) for value in item.values()]
    return sum(len(value) for value in fields if isinstance(value, list)) > LONG_PARTS


def text_size(value: object) -> int:
    """Count the characters of all texts in items or tools, and the bytes of encoded texts."""
    if isinstance(value, str | bytes):
        return len(value)
    # The types of JSON, as a check of an abstract class takes ten times as long.
    if isinstance(value, dict):
        return sum(map(text_size, value.values()))
    return sum(map(text_size, value)) if isinstance(value, list | tuple) else 0


async def run_sized(project: str, size: WorkSize, function: Callable[[], T], stop: Callable[[], None] | None = None) -> T:
    """Call `function` where work of this size belongs and return the result. `stop` is as for `run`. Raises RateLimited."""
    return function() if size is WorkSize.SHORT else await run(project, size is WorkSize.LONG, function, stop)


async def run(project: str, is_long: bool, function: Callable[[], T], stop: Callable[[], None] | None = None) -> T:
    """Call `function` in a thread and return the result. `stop` is called if the caller is cancelled. Raises RateLimited.

    Long work waits until no other long work of the project runs.
    """
    if not is_long:
        return await asyncio.to_thread(function)
    lock = _lock(project)
    try:
        async with asyncio.timeout(WAIT_LIMIT_S):
            await lock.acquire()
    except TimeoutError:
        raise RateLimited("Other long requests of this project are being read. Try again in a moment.") from None
    future = _threads.submit(function)
    # A running thread cannot be cancelled: the project waits for its end even if the caller is gone.
    future.add_done_callback(_releasing(lock))
    with _trim.around():
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if stop is not None:
                stop()
            raise


async def apart(project: str, is_long: bool, function: Callable[[], T]) -> T:
    """Call `function` in the pool if `is_long`, otherwise directly on the event loop. Raises RateLimited."""
    return await run(project, True, function) if is_long else function()


class _Trim:
    """Return of freed memory to the operating system, which the C library would retain otherwise.

    Runs every TRIM_DELAY_S seconds while there is long work. After the last work, when few objects are left, it also collects
    garbage: until then an exception and its frames hold the text of a request.
    """

    def __init__(self) -> None:
        # None if the C library lacks `malloc_trim`.
        self._function: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
        self._running = 0
        self._is_due = False

    @contextmanager
    def around(self) -> Iterator[None]:
        """Count long work for the duration of the context. Called on the event loop."""
        self._running += 1
        self._schedule()
        try:
            yield
        finally:
            self._running -= 1

    def _schedule(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(TRIM_DELAY_S, self._submit)

    def _submit(self) -> None:
        self._is_due = False
        _threads.submit(self._now, is_over=not self._running)
        if self._running:
            self._schedule()

    def _now(self, is_over: bool) -> None:
        if is_over:
            gc.collect()
        if self._function is not None:
            self._function(0)


_trim = _Trim()


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
