"""Calls of the storage of files in threads of their own, with a time limit: a folder of the network may hang for minutes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from queue import SimpleQueue
from typing import Any, Final, TypeVar

T = TypeVar("T")

# Calls at a time. Further ones wait for a thread, within their own time limit.
THREADS: Final = 16
ANSWER_LIMIT_S: Final = 10.0
# Limits for whole files, whose bytes need time.
READ_LIMIT_S: Final = 60.0
SAVE_LIMIT_S: Final = 300.0
# Limit of all calls while an earlier one is overdue and none has ended since: the storage probably hangs.
# While all threads have such calls it is 0.
OVERDUE_LIMIT_S: Final = 0.2
# Calls that take longer are slow.
SLOW_S: Final = 0.01


class CallOverdue(Exception):
    """Call without an answer within its time limit. `call` goes on if it has begun."""

    def __init__(self, call: Future[Any]) -> None:
        # Without the limit, which varies: a sentence that changes would be logged at each check.
        super().__init__("no answer in time")
        self.call = call


class _Threads:
    """Up to THREADS threads, which do not keep the process from ending, as those of a ThreadPoolExecutor do."""

    def __init__(self) -> None:
        self._calls = SimpleQueue[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]]()
        # Number of threads, and of calls that have not ended.
        self._started, self._unfinished, self._lock = 0, 0, threading.Lock()

    def submit(self, function: Callable[..., T], *args: Any) -> Future[T]:
        """Begin a call when a thread is free."""
        call = Future[T]()
        with self._lock:
            self._unfinished += 1
            needs_thread = self._started < min(self._unfinished, THREADS)
            self._started += needs_thread
        self._calls.put((call, function, args))
        if needs_thread:
            threading.Thread(target=self._work, name="storage", daemon=True).start()
        return call

    def _work(self) -> None:
        while True:
            call, function, args = self._calls.get()
            if call.set_running_or_notify_cancel():
                _run(call, function, args)
            # An idle thread keeps no result.
            del call, function, args
            with self._lock:
                self._unfinished -= 1


def _run(call: Future[Any], function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        call.set_result(function(*args))
    except BaseException as error:  # the caller gets it
        call.set_exception(error)
    finally:
        _overdue.clear()


_threads = _Threads()
_overdue = set[Future[Any]]()
_slow_context: ContextVar[Callable[[], AbstractContextManager[None]]] = ContextVar("slow context", default=nullcontext)


@contextmanager
def slow_calls_in(context: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """Enter `context()` in this thread during the part of each `call` after SLOW_S seconds."""
    token = _slow_context.set(context)
    try:
        yield
    finally:
        _slow_context.reset(token)


def call(function: Callable[..., T], *args: Any, limit_s: float | None = None) -> T:
    """Call a function that uses the storage and no other function of this module. Raises its errors and CallOverdue.

    `limit_s` is ANSWER_LIMIT_S by default.
    """
    future = _threads.submit(function, *args)
    current_limit_s = _current_limit(limit_s)
    wait([future], min(current_limit_s, SLOW_S))
    if not future.done() and current_limit_s > SLOW_S:
        with _slow_context.get()():
            wait([future], current_limit_s - SLOW_S)
    return _result(future)


async def call_async(function: Callable[..., T], *args: Any, limit_s: float | None = None) -> T:
    """Call a function as `call` does, without blocking the event loop."""
    future = _threads.submit(function, *args)
    waiting = asyncio.wrap_future(future)
    try:
        done, _ = await asyncio.wait({waiting}, timeout=_current_limit(limit_s))
        if done:
            return waiting.result()
    finally:
        waiting.cancel()
    return _result(future)


def begin(function: Callable[..., object]) -> None:
    """Call a function without waiting for its end."""
    _threads.submit(function)


def _current_limit(limit_s: float | None) -> float:
    limit_s = ANSWER_LIMIT_S if limit_s is None else limit_s
    if len(_overdue) >= THREADS:
        return 0.0
    return min(limit_s, OVERDUE_LIMIT_S) if _overdue else limit_s


def _result(future: Future[T]) -> T:
    """Return the result. Raises CallOverdue if the call has not ended; a call that has not begun is left out."""
    if not future.done():
        if not future.cancel():
            _overdue.add(future)
            future.add_done_callback(_overdue.discard)
        raise CallOverdue(future)
    return future.result()
