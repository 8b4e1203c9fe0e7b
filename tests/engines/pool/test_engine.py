"""Pool of replay engines: sticky sessions, failures, refusals, and the return of an engine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager

import pytest

from responses_app.engine_interface import (
    Chunk,
    EngineMoved,
    EngineOverloaded,
    EngineUnavailable,
    EngineUnreachable,
    GenerateRequest,
)
from responses_app.engines.pool.engine import WATCH_S, EnginePool
from responses_app.engines.pool.member import ranking
from responses_app.engines.pool.start import GRACE_S
from responses_app.engines.replay.engine import Fault, Recording, ReplayEngine, Tokens, recording
from tests.support.engines.generate import collect, make_request, tokens
from tests.support.manual_clock import ManualClock
from tests.support.waiting import run_ready_tasks

NAMES = ("http://a:1", "http://b:2", "http://c:3")
SESSION = "resp_1"
ORDER = ranking(SESSION, NAMES)
DIES = Recording([Tokens((1, 2)), Fault("down", "out of memory", 60.0)])
WHOLE = recording((1,), (2, 3))


class RemoteEngine(ReplayEngine):
    """Replay engine that can be away at the start, or refuse requests for `refuses_s` seconds from the next request on."""

    is_away = False
    refuses_s = 0.0
    checks = 0
    # Not set while the engine hangs.
    answers: asyncio.Event | None = None

    async def is_healthy(self) -> bool:
        self.checks += 1
        await run_ready_tasks()
        if self.answers is not None:
            await self.answers.wait()
        return await super().is_healthy()

    async def start(self) -> None:
        if self.is_away:
            raise EngineUnreachable("connection refused")
        await super().start()

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        if self.refuses_s:
            self.refusal_s = self.refuses_s
            raise EngineOverloaded("queue full", self.refuses_s)
        async with aclosing(super().generate(request)) as chunks:
            async for chunk in chunks:
                yield chunk


def make_engines(max_model_len: int = 64) -> dict[str, RemoteEngine]:
    return {name: RemoteEngine([WHOLE], loop=True, max_model_len=max_model_len) for name in NAMES}


@asynccontextmanager
async def running(engines: Mapping[str, RemoteEngine], clock: ManualClock | None = None) -> AsyncIterator[EnginePool]:
    """Start a pool with a manual clock."""
    clock = clock or ManualClock()
    pool = EnginePool(engines, clock=clock, sleep=clock.sleep)
    await pool.start()
    yield pool
    await pool.close()


def served(engines: Mapping[str, RemoteEngine]) -> list[str]:
    """Return the names of the engines that have had requests."""
    return [name for name, engine in engines.items() if engine.requests]


def test_all_turns_of_a_session_go_to_one_engine() -> None:
    async def main() -> None:
        engines = make_engines()
        async with running(engines) as pool:
            for _ in range(5):
                assert tokens(await collect(pool, make_request(session=SESSION))) == [1, 2, 3]
            assert served(engines) == [ORDER[0]]
            assert {status.name: status.requests for status in pool.statuses}[ORDER[0]] == 5
            assert all(status.in_flight == 0 for status in pool.statuses)

    asyncio.run(main())


def test_engine_that_fails_before_the_first_chunk_is_replaced_at_once(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        engines = make_engines()
        async with running(engines) as pool:
            engines[ORDER[0]].fail_for()
            with caplog.at_level(logging.INFO, "responses.engines"):
                assert tokens(await collect(pool, make_request(session=SESSION))) == [1, 2, 3]
            assert served(engines) == [ORDER[1]]
            assert [status.name for status in pool.statuses if not status.is_up] == [ORDER[0]]
            assert "is out" in caplog.text
            assert "2 of 3 are left" in caplog.text

    asyncio.run(main())


def test_engine_that_dies_during_a_generation_leaves_the_rest_to_another() -> None:
    async def main() -> None:
        engines = make_engines()
        engines[ORDER[0]] = RemoteEngine([DIES], max_model_len=64)
        async with running(engines) as pool:
            chunks = pool.generate(make_request(session=SESSION))
            assert (await anext(chunks)).tokens == (1, 2)
            with pytest.raises(EngineMoved, match="out of memory"):
                await anext(chunks)
            assert tokens(await collect(pool, make_request(session=SESSION))) == [1, 2, 3]
            assert served(engines) == sorted(ORDER[:2])

    asyncio.run(main())


def test_request_names_the_engines_that_it_has_used() -> None:
    async def main() -> None:
        engines = {name: RemoteEngine([Recording([Fault("down", "gave up")]), WHOLE]) for name in NAMES}
        engines[ORDER[1]] = RemoteEngine([WHOLE])
        request = make_request(session=SESSION)
        async with running(engines) as pool:
            await collect(pool, request)
        assert request.used_engines == [name.removeprefix("http://") for name in ORDER[:2]]

    asyncio.run(main())


def test_request_that_fails_on_healthy_engines_takes_none_out() -> None:
    async def main() -> None:
        engines = {name: RemoteEngine([Recording([Fault("down", "gave up")]), WHOLE]) for name in NAMES}
        async with running(engines) as pool:
            with pytest.raises(EngineUnavailable, match="gave up"):
                await collect(pool, make_request(session=SESSION))
            assert sorted(served(engines)) == sorted(NAMES), "each engine was tried once"
            assert all(status.is_up for status in pool.statuses)
            assert tokens(await collect(pool, make_request(session=SESSION))) == [1, 2, 3]

    asyncio.run(main())


def test_generation_that_fails_on_a_healthy_engine_is_an_ordinary_failure() -> None:
    async def main() -> None:
        engines = {name: RemoteEngine([Recording([Tokens((1, 2)), Fault("down", "gave up")])]) for name in NAMES}
        async with running(engines) as pool:
            with pytest.raises(EngineUnavailable) as caught:
                await collect(pool, make_request(session=SESSION))
            assert type(caught.value) is EngineUnavailable
            assert all(status.is_up for status in pool.statuses)

    asyncio.run(main())


def test_last_engine_that_dies_is_an_ordinary_failure() -> None:
    async def main() -> None:
        async with running({NAMES[0]: RemoteEngine([DIES], max_model_len=64)}) as pool:
            with pytest.raises(EngineUnavailable) as caught:
                await collect(pool, make_request())
            assert type(caught.value) is EngineUnavailable

    asyncio.run(main())


def test_engine_comes_back_after_growing_pauses(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        clock, engines = ManualClock(), make_engines()
        async with running(engines, clock) as pool:
            engines[ORDER[0]].fail_for()
            await collect(pool, make_request(session=SESSION))
            for _ in range(10):
                await clock.advance(WATCH_S)
            assert sum(status.is_up for status in pool.statuses) == 2
            engines[ORDER[0]].recover()
            with caplog.at_level(logging.INFO, "responses.engines"):
                for _ in range(10):
                    await clock.advance(WATCH_S)
            assert f"engine {ORDER[0]} is back; 3 of 3 are available" in caplog.text
            await collect(pool, make_request(session=SESSION))
            assert len(engines[ORDER[0]].requests) == 1

    asyncio.run(main())


def test_idle_engine_that_dies_is_found_before_a_request() -> None:
    async def main() -> None:
        clock, engines = ManualClock(), make_engines()
        async with running(engines, clock) as pool:
            engines[ORDER[2]].fail_for()
            for _ in range(12):
                await clock.advance(WATCH_S)
            assert [status.name for status in pool.statuses if not status.is_up] == [ORDER[2]]

    asyncio.run(main())


def test_refusal_goes_to_the_next_engine_and_the_session_comes_back() -> None:
    async def main() -> None:
        engines = make_engines()
        first = engines[ORDER[0]]
        async with running(engines) as pool:
            first.refuses_s = 7.0
            await collect(pool, make_request(session=SESSION))
            first.refuses_s = 0.0
            await collect(pool, make_request(session=SESSION))
            assert [len(engines[name].requests) for name in ORDER] == [0, 2, 0]
            first.refusal_s = 0.0
            await collect(pool, make_request(session=SESSION))
            assert [len(engines[name].requests) for name in ORDER] == [1, 2, 0]
            assert all(status.is_up for status in pool.statuses)

    asyncio.run(main())


def test_refusal_of_all_engines_names_the_shortest_pause() -> None:
    async def main() -> None:
        engines = make_engines()
        async with running(engines) as pool:
            assert pool.refusal_s == 0
            for name, pause_s in zip(NAMES, (9.0, 3.0, 5.0), strict=True):
                engines[name].refuses_s = pause_s
            with pytest.raises(EngineOverloaded) as caught:
                await collect(pool, make_request(session=SESSION))
            assert caught.value.retry_after_s == pool.refusal_s == 3.0
            assert await pool.is_healthy()

    asyncio.run(main())


def test_without_any_engine_requests_fail_until_a_health_check_succeeds() -> None:
    async def main() -> None:
        engines = make_engines()
        async with running(engines) as pool:
            for engine in engines.values():
                engine.fail_for()
            with pytest.raises(EngineUnavailable, match="none of http://a:1, http://b:2, http://c:3 answers"):
                await collect(pool, make_request(session=SESSION))
            assert not await pool.is_healthy()
            engines[NAMES[2]].recover()
            assert await pool.is_healthy()
            assert tokens(await collect(pool, make_request(session=SESSION))) == [1, 2, 3]

    asyncio.run(main())


def test_an_engine_that_hangs_does_not_delay_the_health_check_of_the_others() -> None:
    async def main() -> None:
        engines = make_engines()
        async with running(engines) as pool:
            for name in NAMES[:2]:
                engines[name].answers = asyncio.Event()
            assert await pool.is_healthy()
            assert [status.is_up for status in pool.statuses] == [True, True, True]

    asyncio.run(main())


def test_start_needs_a_single_engine_and_starts_the_others_later() -> None:
    async def main() -> None:
        clock, engines = ManualClock(), make_engines()
        engines[NAMES[1]].is_away = True
        pool = EnginePool(engines, start_wait=3600, clock=clock, sleep=clock.sleep)
        starting = asyncio.create_task(pool.start())
        waited_s = 0.0
        while not starting.done():
            await clock.advance(0.25)
            waited_s += 0.25
        assert waited_s <= GRACE_S + 1
        assert [status.is_up for status in pool.statuses] == [True, False, True]
        assert pool.max_model_len == 64
        engines[NAMES[1]].is_away = False
        for _ in range(40):
            await clock.advance(WATCH_S)
        assert [status.is_up for status in pool.statuses] == [True, True, True]
        await pool.close()

    asyncio.run(main())


def test_concurrent_checks_of_an_engine_share_one_attempt() -> None:
    async def main() -> None:
        clock, engines = ManualClock(), make_engines()
        async with running(engines, clock) as pool:
            for engine in engines.values():
                engine.fail_for()
            with pytest.raises(EngineUnavailable):
                await collect(pool, make_request(session=SESSION))
            checks = [engine.checks for engine in engines.values()]
            assert not any(await asyncio.gather(*(pool.is_healthy() for _ in range(50))))
            assert [engine.checks - before for engine, before in zip(engines.values(), checks, strict=True)] == [1, 1, 1]

    asyncio.run(main())


def test_start_without_any_engine_fails_after_start_wait() -> None:
    async def main() -> None:
        clock, engines = ManualClock(), make_engines()
        for engine in engines.values():
            engine.is_away = True
        pool = EnginePool(engines, start_wait=2, clock=clock, sleep=clock.sleep)
        starting = asyncio.create_task(pool.start())
        for _ in range(10):
            await clock.advance(0.25)
        with pytest.raises(EngineUnavailable, match="connection refused"):
            await starting

    asyncio.run(main())


def test_engines_with_different_context_lengths_are_refused_at_the_start() -> None:
    async def main() -> None:
        engines = make_engines() | {NAMES[1]: RemoteEngine(max_model_len=32)}
        with pytest.raises(EngineUnavailable, match=r"max_model_len differs: http://a:1 has 64, http://b:2 has 32"):
            await EnginePool(engines).start()

    asyncio.run(main())


def test_engine_that_comes_later_with_another_context_length_stays_out() -> None:
    async def main() -> None:
        clock, engines = ManualClock(), make_engines() | {NAMES[1]: RemoteEngine(max_model_len=32)}
        engines[NAMES[1]].is_away = True
        async with running(engines, clock) as pool:
            engines[NAMES[1]].is_away = False
            for _ in range(20):
                await clock.advance(WATCH_S)
            assert [status.is_up for status in pool.statuses] == [True, False, True]

    asyncio.run(main())


def test_closed_generation_is_aborted_and_not_counted_any_more() -> None:
    async def main() -> None:
        engines = make_engines()
        async with running(engines) as pool:
            chunks = pool.generate(make_request(session=SESSION))
            await anext(chunks)
            assert sum(status.in_flight for status in pool.statuses) == 1
            await chunks.aclose()
            assert sum(status.in_flight for status in pool.statuses) == 0
            assert len(engines[ORDER[0]].aborted) == 1

    asyncio.run(main())
