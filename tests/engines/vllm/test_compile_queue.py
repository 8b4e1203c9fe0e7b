"""Compile queue, with a generator that waits for a gate in place of an engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from responses_app.engine_interface import Chunk, Constraint, GenerateRequest, Sampling
from responses_app.engines.vllm import compile_queue
from responses_app.engines.vllm.compile_queue import CompileQueue
from tests.support.waiting import eventually


class GatedCompileEngine:
    """Generator that starts when the gate is opened; `order` are the request ids in start order."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.turns = CompileQueue()

    async def start(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        self.order.append(request.id)
        await self.gates.setdefault(request.id, asyncio.Event()).wait()
        yield Chunk((1,))
        yield Chunk((2,), finish="stop")

    async def generate(self, id: str, owner: str, schema: str | None) -> int:
        constraint = Constraint("structural_tag", schema) if schema else None
        request = GenerateRequest(id, [1], Sampling(max_tokens=2), constraint, owner=owner)
        return len([chunk async for chunk in self.turns.generate(request, self.start)])

    def waiting(self) -> int:
        """Return the number of waiting requests."""
        return sum(map(len, self.turns._waiting.values()))

    def open(self, id: str) -> None:
        self.gates.setdefault(id, asyncio.Event()).set()


def test_another_project_waits_for_one_constraint_and_not_for_all() -> None:
    async def main() -> None:
        engine = GatedCompileEngine()
        attacks = [asyncio.create_task(engine.generate("a0", "a", "schema 0"))]
        await eventually(lambda: engine.order == ["a0"])
        attacks += [asyncio.create_task(engine.generate(f"a{n}", "a", f"schema {n}")) for n in (1, 2)]
        await eventually(lambda: engine.waiting() == 2)
        victim = asyncio.create_task(engine.generate("b", "b", "schema b"))
        plain = asyncio.create_task(engine.generate("plain", "b", None))
        await eventually(lambda: engine.waiting() == 3)
        await eventually(lambda: engine.order == ["a0", "plain"])
        engine.open("a0")
        await eventually(lambda: len(engine.order) == 3)
        engine.open(engine.order[2])
        await eventually(lambda: len(engine.order) == 4)
        assert "b" in engine.order, "all of the other project went first"
        for id in ("a1", "a2"):
            engine.open(id)
        for id in ("plain", "b"):
            engine.open(id)
        assert await asyncio.gather(*attacks, victim, plain) == [2] * 5

    asyncio.run(asyncio.wait_for(main(), 30))


def test_a_known_constraint_waits_for_nothing() -> None:
    async def main() -> None:
        engine = GatedCompileEngine()
        engine.open("first")
        await engine.generate("first", "a", "same")
        request = asyncio.create_task(engine.generate("slow", "a", "other"))
        await eventually(lambda: "slow" in engine.order)
        engine.open("again")
        assert await engine.generate("again", "b", "same") == 2
        request.cancel()
        await asyncio.wait([request])

    asyncio.run(asyncio.wait_for(main(), 30))


def test_a_client_that_leaves_gives_its_turn_back() -> None:
    async def main() -> None:
        engine = GatedCompileEngine()
        tasks = []
        for number, id in enumerate(("running", "waiting", "last")):
            tasks.append(asyncio.create_task(engine.generate(id, id, f"schema {id}")))
            await eventually(lambda: len(engine.order) + engine.waiting() == number + 1)  # noqa: B023 - awaited at once
        tasks[1].cancel()
        tasks[0].cancel()
        await asyncio.wait(tasks[:2])
        engine.open("last")
        assert await tasks[2] == 2
        assert engine.order == ["running", "last"]

    asyncio.run(asyncio.wait_for(main(), 30))


def test_a_turn_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_queue, "TURN_LIMIT_S", 0.05)

    async def main() -> None:
        engine = GatedCompileEngine()
        silent = asyncio.create_task(engine.generate("silent", "a", "schema a"))
        await eventually(lambda: engine.order == ["silent"])
        engine.open("next")
        assert await engine.generate("next", "b", "schema b") == 2
        silent.cancel()
        await asyncio.wait([silent])

    asyncio.run(asyncio.wait_for(main(), 30))
