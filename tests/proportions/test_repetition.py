"""Repetition: greedy answers and seeds give the same tokens, alone and beside other requests; a cancelled response keeps its text."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

from responses_app.engines import open_engine
from tests.support.engines.generate import collect, make_request, tokens
from tests.support.large_model_server import LargeModelServer, deltas, text_of

GREEDY: dict[str, Any] = {"max_output_tokens": 96, "ignore_eos": True}


def test_greedy_answer_is_the_same_beside_other_requests(large: LargeModelServer) -> None:
    alone = text_of(large.create(input="Ada", **GREEDY))
    inputs = ["Ada", "漢字 " * 300, "Ada", "Привет", "🦕" * 100, "Ada", "x", "Ada"]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda text: text_of(large.create(input=text, **GREEDY)), inputs))
    assert [answer for text, answer in zip(inputs, answers, strict=True) if text == "Ada"] == [alone] * 4
    assert len(set(answers)) == 5


def test_seed_decides_the_tokens(large: LargeModelServer) -> None:
    async def main() -> list[list[int]]:
        engine = open_engine(f"unix://{quote(str(large.socket))}")
        await engine.start()
        try:
            samplings = [{"seed": seed, "ignore_eos": True} for seed in (1, 1, 2, 1)]
            alone = await collect(engine, make_request(range(300, 340), 64, sampling=samplings[0]))
            requests = (make_request(range(300, 340), 64, sampling=sampling) for sampling in samplings)
            together = await asyncio.gather(*(collect(engine, request) for request in requests))
            return [tokens(chunks) for chunks in (alone, *together)]
        finally:
            await engine.close()

    alone, first, second, other, third = asyncio.run(main())
    assert alone == first == second == third != other
    assert len(alone) == 64


def test_cancelled_response_keeps_its_text(large: LargeModelServer) -> None:
    body = {"input": "Ada", "background": True, "ignore_eos": True, "max_output_tokens": 8000}
    seen: list[dict[str, Any]] = []

    def cancel(event: dict[str, Any]) -> None:
        seen.append(event)
        if len(deltas(seen)) == 20 and event["type"] == "response.output_text.delta":
            assert large.request("POST", f"/responses/{seen[0]['response']['id']}/cancel").status_code == 200

    events = large.stream(cancel, **body)
    response = events[-1]["response"]
    assert response["status"] == "cancelled"
    assert text_of(response) == "".join(deltas(events))
    assert text_of(large.create(input="Ada", **GREEDY)).startswith("".join(deltas(events))[:20])
    assert large.replay(response["id"]) == events
