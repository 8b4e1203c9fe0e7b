"""Load of streaming requests from one event loop, with the CPU time and the lag of the client itself."""

from __future__ import annotations

import asyncio
import gc
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import uvloop

from bench.support.quantiles import quantile
from bench.support.stream_client import StreamClient, StreamResult, Target

LIMIT_S = 600.0
# Makes the client of a request.
MakeClient: TypeAlias = Callable[[bytes, asyncio.Future[StreamResult]], StreamClient]
# Interval of the timer that measures the lag of the client's event loop.
LAG_INTERVAL_S = 0.01


@dataclass(frozen=True, slots=True)
class Load:
    """Streams of a round, the length, CPU seconds of the client, and delays of a timer in the client's event loop in seconds."""

    streams: list[StreamResult]
    seconds: float
    client_cpu: float
    lags: list[float]

    @property
    def tokens(self) -> int:
        """Count the generated tokens."""
        return sum(stream.tokens for stream in self.streams)

    @property
    def events(self) -> int:
        """Count the events."""
        return sum(stream.events for stream in self.streams)

    @property
    def rate(self) -> float:
        """Compute the tokens per second over all streams."""
        return self.tokens / self.seconds

    def first(self, share: float) -> float:
        """Return a quantile of the time to the first token, in seconds from the request."""
        return quantile([stream.times[0] - stream.began for stream in self.streams if stream.times], share)

    def visible(self, share: float) -> float:
        """Return a quantile of the time to the first text outside the reasoning, in seconds from the request."""
        return quantile([stream.visible - stream.began for stream in self.streams if stream.visible is not None], share)

    def opened(self, share: float) -> float:
        """Return a quantile of the time to the first event, in seconds."""
        return quantile([stream.opened - stream.began for stream in self.streams], share)

    def connected(self, share: float) -> float:
        """Return a quantile of the time to the connection, in seconds."""
        return quantile([stream.connected - stream.began for stream in self.streams], share)

    def gap(self, share: float) -> float:
        """Return a quantile of the gaps between two reads of a stream, in seconds."""
        return quantile([b - a for stream in self.streams for a, b in itertools.pairwise(stream.times)], share)

    def largest_gap(self, share: float) -> float:
        """Return a quantile over the streams of the largest gap of each stream, in seconds."""
        gaps = ([b - a for a, b in itertools.pairwise(stream.times)] for stream in self.streams)
        return quantile([max(some) for some in gaps if some], share)

    def lag(self, share: float) -> float:
        """Return a quantile of the delays of the client's timer, in seconds."""
        return quantile(self.lags, share)


def run_load(target: Target, requests: Sequence[bytes], streams: int) -> Load:
    """Send `requests`, `streams` at a time. Raises ConnectionError if a request fails."""
    gc.collect()
    gc.disable()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_run(target, iter(requests), streams))
    finally:
        gc.enable()


def story_requests(target: Target, count: int, **fields: object) -> list[bytes]:
    """Encode `count` requests. Each begins otherwise, so that the prefix cache does not replace the prefill."""
    return [target.request(input=f"{number}. Tell me a long story about a dragon.", **fields) for number in range(count)]


async def _run(target: Target, requests: Iterator[bytes], streams: int) -> Load:
    lags: list[float] = []
    timer = asyncio.create_task(_measure_lag(lags))
    began, cpu = time.perf_counter(), time.process_time()
    results: list[StreamResult] = []
    make_client = partial(StreamClient, api=target.api)
    await asyncio.gather(*(send_each(target, requests, results.append, make_client) for _ in range(streams)))
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    timer.cancel()
    return Load(results, seconds, cpu, lags)


async def send_each(
    target: Target, requests: Iterator[bytes], on_end: Callable[[StreamResult], None], make_client: MakeClient = StreamClient
) -> None:
    """Send `requests` one after another. Raises ConnectionError if a request fails."""
    for request in requests:
        on_end(await _send(target, request, make_client))


async def _send(target: Target, request: bytes, make_client: MakeClient) -> StreamResult:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[StreamResult] = loop.create_future()
    await loop.create_connection(lambda: make_client(request, done), target.host, target.port)
    result = await asyncio.wait_for(done, LIMIT_S)
    if result.status == "failed":
        raise ConnectionError("a response has failed")
    return result


async def _measure_lag(lags: list[float]) -> None:
    while True:
        due = time.perf_counter() + LAG_INTERVAL_S
        await asyncio.sleep(LAG_INTERVAL_S)
        lags.append(time.perf_counter() - due)
