"""The replay engine behaves like a real engine, and reports missing and unused recordings."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from responses_app.engine_interface import Chunk, EngineUnavailable, Logprob, RequestRejected
from responses_app.engines.replay.engine import (
    Delay,
    Fault,
    Hold,
    Recording,
    ReplayEngine,
    Tokens,
    UnexpectedRequest,
    UnusedRecordings,
    recording,
)
from tests.support.engines.generate import collect, make_request, tokens
from tests.support.waiting import eventually, run_ready_tasks


async def started(*lines: Recording, loop: bool = False, max_model_len: int = 1000) -> ReplayEngine:
    engine = ReplayEngine(lines, loop=loop, max_model_len=max_model_len)
    await engine.start()
    return engine


def replay(line: Recording, max_tokens: int = 100, stops: tuple[int, ...] = ()) -> list[Chunk]:
    async def main() -> list[Chunk]:
        engine = await started(line)
        return await collect(engine, make_request(max_tokens=max_tokens, sampling={"stop_token_ids": stops}))

    return asyncio.run(main())


def test_chunks_replay_in_their_groups() -> None:
    assert replay(recording([1, 2, 3], [4], finish="length", cached=16)) == [
        Chunk((1, 2, 3), cached=16),
        Chunk((4,), finish="length"),
    ]


def test_final_delay_ends_with_an_empty_chunk() -> None:
    assert replay(Recording([Tokens([1]), Delay(0)])) == [Chunk((1,)), Chunk(finish="stop")]


def test_recording_without_tokens_finishes() -> None:
    assert replay(Recording([], cached=3)) == [Chunk(finish="stop", cached=3)]


def test_max_tokens_ends_with_length() -> None:
    assert replay(recording([1, 2], [3, 4]), max_tokens=3) == [Chunk((1, 2)), Chunk((3,), finish="length")]


def test_max_tokens_ends_between_two_chunks() -> None:
    assert replay(recording([1, 2], [3, 4]), max_tokens=2) == [Chunk((1, 2), finish="length")]


def test_recording_of_max_tokens_has_its_own_finish() -> None:
    assert replay(recording([1, 2], [3]), max_tokens=3) == [Chunk((1, 2)), Chunk((3,), finish="stop")]


def test_stop_token_ends_the_output_and_is_included() -> None:
    assert replay(recording([1, 9, 2], [3], finish="length"), stops=(9,)) == [Chunk((1, 9), finish="stop")]


def test_logprobs_are_cut_with_their_tokens() -> None:
    logprobs = [Logprob(1, -0.1), Logprob(2, -0.2)]
    assert replay(Recording([Tokens([1, 2], logprobs)]), max_tokens=1) == [Chunk((1,), (Logprob(1, -0.1),), finish="length")]


@settings(deadline=None)
@given(
    groups=st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=5),
    limit=st.integers(1, 25),
    stop=st.one_of(st.none(), st.integers(0, 9)),
)
def test_stop_token_and_limit_hold_for_any_grouping(groups: list[list[int]], limit: int, stop: int | None) -> None:
    chunks = replay(recording(*groups), limit, () if stop is None else (stop,))
    flat = [token for group in groups for token in group]
    until_stop = flat[: flat.index(stop) + 1] if stop in flat else flat
    assert tokens(chunks) == until_stop[:limit]
    assert [chunk.finish is not None for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[-1].finish == ("length" if len(until_stop) > limit else "stop")


def test_full_context_ends_with_length() -> None:
    async def main() -> list[Chunk]:
        return await collect(await started(recording([1, 2, 3]), max_model_len=5), make_request([7, 7, 7], 100))

    assert asyncio.run(main()) == [Chunk((1, 2), finish="length")]


def test_prompt_of_full_context_length_is_rejected() -> None:
    async def main() -> None:
        await collect(await started(recording([1]), max_model_len=3), make_request([7, 7, 7]))

    with pytest.raises(RequestRejected, match="3 tokens"):
        asyncio.run(main())


def test_delays_take_their_time() -> None:
    began = time.monotonic()
    replay(Recording([Delay(0.05), Tokens([1]), Delay(0.05)]))
    assert time.monotonic() - began >= 0.1


def test_recording_is_held_until_its_file_exists(tmp_path: Path) -> None:
    async def main() -> None:
        gate = tmp_path / "gate"
        engine = await started(Recording([Tokens([1]), Hold(gate), Tokens([2])]))
        chunks = engine.generate(make_request())
        assert await anext(chunks) == Chunk((1,))
        held = asyncio.ensure_future(anext(chunks))
        await run_ready_tasks(5)
        assert not held.done()
        gate.touch()
        assert await held == Chunk((2,), finish="stop")

    asyncio.run(main())


def test_fault_in_the_middle_is_followed_by_recovery() -> None:
    async def main() -> None:
        engine = await started(Recording([Tokens([1]), Fault("down", "out of memory", 0.2)]), recording([2]))
        chunks = engine.generate(make_request())
        assert await anext(chunks) == Chunk((1,))
        with pytest.raises(EngineUnavailable, match="out of memory"):
            await anext(chunks)
        assert not await engine.is_healthy()
        with pytest.raises(EngineUnavailable, match="away"):
            await collect(engine, make_request())
        assert len(engine.left) == 1, "a rejected request uses no recording"
        await eventually(engine.is_healthy)
        assert tokens(await collect(engine, make_request())) == [2]
        assert engine.aborted == []
        assert not engine.running

    asyncio.run(main())


def test_bad_fault_rejects_the_request() -> None:
    with pytest.raises(RequestRejected, match="no such grammar"):
        replay(Recording([Fault("bad", "no such grammar")]))


def test_engine_can_fail_under_a_running_request() -> None:
    async def main() -> None:
        engine = await started(recording([1], [2]), recording([3]))
        chunks = engine.generate(make_request())
        await anext(chunks)
        engine.fail_for()
        with pytest.raises(EngineUnavailable):
            await anext(chunks)
        engine.recover()
        assert tokens(await collect(engine, make_request())) == [3]

    asyncio.run(main())


def test_closed_request_is_recorded_as_aborted() -> None:
    async def main() -> None:
        engine = await started(recording([1], [2]))
        chunks = engine.generate(make_request(id="early"))
        await anext(chunks)
        assert engine.running == {"early"}
        await chunks.aclose()
        assert engine.aborted == ["early"]
        assert not engine.running

    asyncio.run(main())


def test_cancelled_wait_is_recorded_as_aborted() -> None:
    async def main() -> None:
        engine = await started(Recording([Tokens([1]), Delay(60)]))
        task = asyncio.create_task(collect(engine, make_request(id="waiting")))
        await eventually(lambda: engine.running == {"waiting"})
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert engine.aborted == ["waiting"]

    asyncio.run(main())


def test_finished_request_is_not_recorded_as_aborted() -> None:
    async def main() -> None:
        engine = await started(recording([1]))
        chunks = engine.generate(make_request())
        assert (await anext(chunks)).finish == "stop"
        await chunks.aclose()
        assert engine.aborted == []
        assert len(engine.requests) == 1

    asyncio.run(main())


def test_recordings_go_to_matching_requests() -> None:
    async def main() -> None:
        engine = await started(
            recording([1], match=[8, 8]), recording([2]), recording([3], match=lambda prompt: prompt[0] == 7)
        )
        assert tokens(await collect(engine, make_request([7]))) == [2]
        assert tokens(await collect(engine, make_request([7]))) == [3]
        assert tokens(await collect(engine, make_request([6, 8, 8]))) == [1]
        await engine.close(strict=True)

    asyncio.run(main())


def test_unexpected_request_raises() -> None:
    async def main() -> None:
        engine = await started(recording([1], match=[8]))
        with pytest.raises(UnexpectedRequest, match="r1x: 1 left"):
            await collect(engine, make_request([7], id="r1x"))
        assert engine.requests == []

    asyncio.run(main())


def test_strict_close_reports_unused_recordings() -> None:
    async def main() -> None:
        engine = await started(recording([1]), recording([2]))
        await collect(engine, make_request())
        with pytest.raises(UnusedRecordings, match="1 lines"):
            await engine.close(strict=True)
        await engine.close()

    asyncio.run(main())


def test_looped_tape_repeats() -> None:
    async def main() -> None:
        engine = await started(recording([1]), recording([2]), loop=True)
        assert [tokens(await collect(engine, make_request())) for _ in range(5)] == [[1], [2], [1], [2], [1]]
        await engine.close(strict=True)

    asyncio.run(main())


def test_engine_is_unavailable_before_start_and_after_close() -> None:
    async def main() -> None:
        engine = ReplayEngine([recording([1])])
        assert not await engine.is_healthy()
        with pytest.raises(EngineUnavailable):
            await collect(engine, make_request())
        await engine.start()
        assert await engine.is_healthy()
        await engine.close()
        assert not await engine.is_healthy()
        with pytest.raises(EngineUnavailable):
            await collect(engine, make_request())

    asyncio.run(main())


def test_engine_serves_many_requests_at_once() -> None:
    async def main() -> None:
        engine = await started()
        engine.add(*(recording([n], [n], match=[n]) for n in range(50)))
        received = await asyncio.gather(*(collect(engine, make_request([n])) for n in reversed(range(50))))
        assert [tokens(chunks) for chunks in received] == [[n, n] for n in reversed(range(50))]

    asyncio.run(main())


def test_image_counts_as_image_tokens() -> None:
    async def main() -> None:
        engine = ReplayEngine([recording([1, 2, 3], [4]), recording([1, 2, 3])], max_model_len=10, image_tokens=4)
        await engine.start()
        assert engine.supports_images
        assert await engine.count_tokens([7, 8], [b"a", b"b"]) == 8
        shown = make_request([7, 8], 9, images=[b"a", b"b"])
        # The context is full after two tokens; the first chunk has the number of prompt tokens.
        assert await collect(engine, shown) == [Chunk((1, 2), finish="length", prompt=8)]
        with pytest.raises(RequestRejected, match="the prompt has 11 tokens"):
            await anext(engine.generate(replace(shown, id="b", images=[b"a"] * 3)))
        assert not ReplayEngine().supports_images

    asyncio.run(main())
