"""Subscription to events that ends when its reader may no longer read."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Final

from django.db import Error

from responses_app.protocol.encoding import EventFrame
from responses_app.runs.execute.broadcast import FrameBatches, Push
from responses_app.wire.event_stream import Subscribe

CHECK_EVERY_S: Final = 30.0


def while_allowed(
    subscribe: Subscribe, is_allowed: Callable[[], Awaitable[bool]], clock: Callable[[], float] = time.monotonic
) -> Subscribe:
    """Return `subscribe` with a check after each CHECK_EVERY_S seconds. The frames end when `is_allowed` returns False.

    The connection is then cut before the end of the response, so the client asks for the rest, and gets the refusal.
    """

    def subscribe_checked(push: Push | None) -> FrameBatches:
        due_s = clock() + CHECK_EVERY_S

        def push_until_due(frames: Sequence[EventFrame]) -> bool:
            # Frames that are not pushed wake the subscriber, which checks.
            return push is not None and clock() < due_s and push(frames)

        async def checked() -> FrameBatches:
            nonlocal due_s
            async with aclosing(subscribe(None if push is None else push_until_due)) as batches:
                async for batch in batches:
                    if clock() >= due_s:
                        # While the database is away nobody knows, and no new events are stored.
                        with suppress(Error):
                            if not await is_allowed():
                                return
                        due_s = clock() + CHECK_EVERY_S
                    yield batch

        return checked()

    return subscribe_checked
