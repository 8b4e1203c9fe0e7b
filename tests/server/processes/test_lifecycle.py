"""Life cycle of a server process: signals while the event loop does not run."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator

import pytest
import uvloop

from responses_app.server.processes.lifecycle import ServerLifecycle
from responses_app.wire.transport_limits import TransportLimits
from tests.support.server.open_gate import OpenGate

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Manager:
    """A manager without engines."""

    is_leaving_soon = False

    async def start(self) -> None:
        """Start nothing."""

    def stop_draining(self) -> None:
        """Stop nothing."""

    async def drain(self, seconds: float, may_come: Callable[[], bool]) -> None:
        """Drain nothing."""

    async def close(self) -> None:
        """Close nothing."""


@pytest.fixture
def handlers() -> Iterator[None]:
    """Restore the signal handlers of the test process."""
    before = [signal.getsignal(number) for number in SIGNALS]
    yield
    for number, handler in zip(SIGNALS, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("number", SIGNALS)
def test_signal_between_the_start_and_the_listening_ends_the_server(number: signal.Signals) -> None:
    loop = uvloop.new_event_loop()
    life = ServerLifecycle(loop, Manager(), drain=0)
    assert life.start()
    os.kill(os.getpid(), number)

    async def application(*_arguments: object) -> None:
        pytest.fail("the server listens")

    assert life.listen(application, "tcp:0", lambda: pytest.fail("the server is ready"), OpenGate(), TransportLimits()) is None
    life.close()
    loop.close()


@pytest.mark.usefixtures("handlers")
def test_signal_while_engines_start_cancels_the_start() -> None:
    class SlowManager(Manager):
        async def start(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.Event().wait()

    loop = uvloop.new_event_loop()
    life = ServerLifecycle(loop, SlowManager(), drain=0)
    assert not life.start()
    life.close()
    loop.close()
