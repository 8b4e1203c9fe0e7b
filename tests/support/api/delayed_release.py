"""Release of concurrency slots that waits for a test."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from responses_app.access import rate_limits


@contextmanager
def delayed_release() -> Iterator[tuple[asyncio.Event, asyncio.Event]]:
    """Delay the release of slots. Yield an event for the start of a release and an event to continue."""
    started, proceed, give = asyncio.Event(), asyncio.Event(), rate_limits._write_released

    async def slowly() -> None:
        started.set()
        await proceed.wait()
        await give()

    with patch.object(rate_limits, "_write_released", slowly):
        yield started, proceed
