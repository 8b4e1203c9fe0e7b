"""Engine whose server answers health checks and sends nothing, as `vllm serve` with a core that hangs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import Any

import pytest

from responses_app.engine_interface import GenerateRequest, Sampling
from responses_app.engines.http import health, silence
from responses_app.engines.http.client import HttpVllm
from responses_app.engines.http.silence import MIN_PROMPT_TOKENS_PER_S, SILENCE_S, Silence
from tests.support.engines.faulty_http_server import GENERATE, HEALTH, serve, stream, token
from tests.support.engines.generate import collect, make_request, tokens
from tests.support.manual_clock import ManualClock
from tests.support.waiting import eventually

WHOLE = stream(token(1), token(2, "length"), b"[DONE]")


def make_silence(clock: ManualClock) -> Silence:
    def ignore(_tasks: Collection[asyncio.Task[Any]], _reason: str) -> None:
        pass

    async def answer() -> bool:
        return True

    return Silence("a:1", ignore, answer, clock=clock)


def request_of(*engines: str, prompt_tokens: int = 1) -> GenerateRequest:
    return GenerateRequest("r", [1] * prompt_tokens, Sampling(max_tokens=1), used_engines=list(engines))


def test_silence_is_too_long_later_for_long_prompts_without_a_token() -> None:
    async def main() -> None:
        clock = ManualClock()
        watched, seconds = make_silence(clock), 100
        watched.begin("long", request_of("a:1", prompt_tokens=seconds * int(MIN_PROMPT_TOKENS_PER_S)))
        await clock.advance(SILENCE_S + seconds - 1)
        assert not watched.is_too_long
        await clock.advance(2)
        assert watched.is_too_long
        watched.note_data("long")
        assert not watched.is_too_long
        await clock.advance(SILENCE_S + 1)
        assert watched.is_too_long
        watched.end("long")
        assert not watched.is_too_long

    asyncio.run(main())


def test_new_request_waits_its_own_time_and_a_moved_one_stays() -> None:
    async def main() -> None:
        clock = ManualClock()
        watched = make_silence(clock)
        watched.begin("moved", request_of("b:2", "a:1"))
        await clock.advance(2 * SILENCE_S)
        assert not watched.is_too_long
        watched.begin("new", request_of("a:1"))
        await clock.advance(SILENCE_S - 1)
        assert not watched.is_too_long
        await clock.advance(2)
        assert watched.is_too_long

    asyncio.run(main())


def test_silence_of_the_only_engine_is_logged_once_and_ends_no_request(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "WATCH_S", 0.02)
    monkeypatch.setattr(silence, "SILENCE_S", 0.1)
    caplog.set_level(logging.INFO, "responses.engines")

    async def main() -> None:
        go_on = asyncio.Event()

        async def wait(writer: asyncio.StreamWriter) -> None:
            await go_on.wait()
            await WHOLE(writer)

        async with serve(wait) as stub:
            engine = HttpVllm(stub.url)
            await engine.start()
            task = asyncio.create_task(collect(engine, make_request()))
            await eventually(lambda: caplog.records)
            checks = stub.count(HEALTH)
            await eventually(lambda: stub.count(HEALTH) > checks + 2)
            assert [record.levelname for record in caplog.records] == ["WARNING"]
            assert "answers health checks and has sent nothing for" in caplog.text
            assert "while 1 request waited" in caplog.text
            assert await engine.is_healthy()
            assert stub.count(GENERATE) == 1
            go_on.set()
            assert tokens(await task) == [1, 2]
            assert "sends tokens again" in caplog.text
            await engine.close()

    asyncio.run(main())
