"""Requests that use the storage of files: places of their own, and threads.

Such a request holds one of these places to its end. Its work in a thread also holds a place among the requests that read rows, as
that work needs the processor and the database, but not while the thread waits for a slow storage.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

from responses_app.api.http import MAX_WAITING, Handler, in_share, resource_shares
from responses_app.store.db import release_connection
from responses_app.store.files import storage_calls
from responses_app.utils.shares import ProjectShares, shares_of

T = TypeVar("T")
# Requests at a time in a process. A project takes all but one. Each makes one call of the storage at a time.
PLACES: Final = storage_calls.THREADS // 2

_threads = ThreadPoolExecutor(PLACES, "files")


def in_storage_share(handler: Handler) -> Handler:
    """Return `handler` with a wait for a place of the project among requests that use the storage. Raises RateLimited."""
    return in_share(handler, storage_shares)


def storage_shares() -> ProjectShares:
    """Return the places for requests that use the storage of files, of this process."""
    return shares_of("storage", PLACES, max_waiting=MAX_WAITING)


async def call_in_thread(project: str, function: Callable[..., T], *args: Any) -> T:
    """Call a function that uses the storage and the database, for a request with a place of `project` in `storage_shares`.

    A call that has begun goes on if the client disconnects, so that a file is added or removed as a whole, and keeps its places.
    """
    resources, loop = resource_shares(), asyncio.get_running_loop()
    async with resources.place(project):
        place = _Place(loop, resources, project)
        call = _threads.submit(place.call, function, *args)
        try:
            return await asyncio.wrap_future(call)
        finally:
            if not call.done():
                for shares in (resources, storage_shares()):
                    _Place(loop, shares, project).keep_until_end(call)


class _Place:
    """Place of a project in `shares` for a thread. The event loop takes and releases the place, in the order of the calls."""

    def __init__(self, loop: asyncio.AbstractEventLoop, shares: ProjectShares, project: str) -> None:
        self._loop, self._shares, self._project = loop, shares, project

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """Call `function` in the current thread, without the place while a call of the storage is slow."""
        try:
            with storage_calls.slow_calls_in(self._released):
                return function(*args)
        finally:
            release_connection()

    def keep_until_end(self, call: Future[Any]) -> None:
        """Hold a second place until the end of `call`: the request releases the first one."""
        self._shares.take(self._project)
        call.add_done_callback(lambda _ended: self._in_loop(self._shares.release))

    @contextmanager
    def _released(self) -> Iterator[None]:
        release_connection()
        self._in_loop(self._shares.release)
        try:
            yield
        finally:
            # Without a wait: little work is left, and a limit would undo what the storage has done.
            self._in_loop(self._shares.take)

    def _in_loop(self, change: Callable[[str], None]) -> None:
        # The event loop may have ended with the process.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(change, self._project)
