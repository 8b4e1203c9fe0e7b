"""Generation across a failure of the engine: continued behind the received tokens, or repeated from the start."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

import pytest

from responses_app.engine_interface import Constraint, EngineOverloaded, GenerateRequest, Sampling
from responses_app.engines.replay.engine import Fault, Recording, ReplayEngine, Tokens, recording
from responses_app.runs.execute.generation import Generation, NotResumable

PROMPT = (1, 2)
ANSWER = (11, 12, 13, 14, 12, 15)
DIES = Recording([Tokens(ANSWER[:2]), Tokens(ANSWER[2:5]), Fault("down", "out of memory", 0.0)])
# It says something else where it should repeat itself.
STRAYS = recording((11, 12), (99, 98))


def spell(tokens: Sequence[int]) -> str:
    """The text of tokens."""
    return " ".join(map(str, tokens))


def generate(
    *lines: Recording, constraint: Constraint | None = None, **sampling: float
) -> tuple[list[int], list[GenerateRequest]]:
    """Return all tokens of a generation, and the requests that the engine received."""

    async def main() -> tuple[list[int], list[GenerateRequest]]:
        engine = ReplayEngine(lines)
        await engine.start()
        request = GenerateRequest("r", PROMPT, Sampling(max_tokens=20, **sampling), constraint)  # type: ignore[arg-type]
        chunks = Generation(engine, request, spell, wait=5).chunks()
        received = [token async for chunk in chunks for token in chunk.tokens]
        await engine.close(strict=True)
        return received, engine.requests

    return asyncio.run(main())


@pytest.mark.parametrize("sampling", [{"temperature": 0.0}, {"temperature": 0.0, "seed": 3}, {"temperature": 1.0}])
def test_generation_resumes_after_the_received_tokens(sampling: dict[str, Any]) -> None:
    received, (_, again) = generate(DIES, recording(ANSWER), **sampling)
    assert received == list(ANSWER)
    assert (again.prompt, again.prior_tokens, again.sampling.max_tokens) == ([*PROMPT, *ANSWER[:5]], 5, 15)
    assert not again.sampling.bias


@pytest.mark.parametrize(
    "sampling",
    [
        {"temperature": 1.0, "seed": 3},
        {"temperature": 0.0, "presence_penalty": 0.5},
        {"temperature": 0.0, "frequency_penalty": 0.5},
    ],
)
def test_position_dependent_sampling_restarts_from_the_first_token(sampling: dict[str, Any]) -> None:
    received, (_, again) = generate(DIES, recording(ANSWER[:3], ANSWER[3:]), **sampling)
    assert received == list(ANSWER), "a token came twice"
    assert (tuple(again.prompt), again.prior_tokens) == (PROMPT, 0)


def test_diverging_restart_continues_from_the_sent_tokens() -> None:
    received, (_, again, further) = generate(DIES, STRAYS, recording(ANSWER), temperature=1.0, seed=3)
    assert received == list(ANSWER)
    assert (again.prior_tokens, further.prior_tokens) == (0, 5)
    assert len({again.id, further.id, "r"}) == 3


def test_shorter_restart_continues_from_the_sent_tokens() -> None:
    received, _ = generate(DIES, recording(ANSWER[:2]), recording(ANSWER), temperature=1.0, seed=3)
    assert received == list(ANSWER)


def test_diverging_constrained_restart_fails() -> None:
    with pytest.raises(NotResumable, match="came out differently"):
        generate(DIES, STRAYS, constraint=Constraint("regex", "[0-9 ]+"), temperature=0.0)


@pytest.mark.parametrize("bias", [{}, {11: 2.0, 99: -100.0}])
def test_penalties_of_a_choice_by_chance_go_on_counting(bias: dict[int, float]) -> None:
    sampling: dict[str, Any] = {"temperature": 1.0, "presence_penalty": 0.5, "frequency_penalty": 0.25, "bias": bias}
    _, (first, again) = generate(DIES, recording(ANSWER), **sampling)
    assert first.sampling.bias == bias
    assert again.prior_tokens == 5
    assert again.sampling.bias == {**bias, 11: bias.get(11, 0.0) - 0.75, 12: -1.0, 13: -0.75, 14: -0.75}


KINDS: tuple[Literal["down", "busy"], ...] = ("down", "busy")
BUSY = Recording([Fault("busy", "queue full", 0.001)])


@pytest.mark.parametrize(("is_patient", "refusals"), [(True, 5), (False, 0)])
def test_refused_request_is_repeated_if_patient(is_patient: bool, refusals: int) -> None:
    async def main() -> None:
        engine = ReplayEngine([BUSY] * (refusals or 1) + [recording(ANSWER)])
        await engine.start()
        request = GenerateRequest("r", PROMPT, Sampling(max_tokens=20))
        chunks = Generation(engine, request, spell, wait=5, is_patient=is_patient).chunks()
        if is_patient:
            assert [token async for chunk in chunks for token in chunk.tokens] == list(ANSWER)
            return
        with pytest.raises(EngineOverloaded):
            await anext(chunks)

    asyncio.run(main())


def test_refused_continuation_waits_and_is_given_up_after_the_wait() -> None:
    async def main() -> None:
        dies, refuses = (Recording([Tokens(ANSWER[:2]), Fault(kind)]) for kind in KINDS)
        engine = ReplayEngine([dies, refuses, recording(ANSWER)])
        await engine.start()
        request = GenerateRequest("r", PROMPT, Sampling(max_tokens=20, temperature=0.0))
        chunks = Generation(engine, request, spell, wait=5).chunks()
        assert [token async for chunk in chunks for token in chunk.tokens] == list(ANSWER)
        endless = ReplayEngine([BUSY], loop=True)
        await endless.start()
        with pytest.raises(EngineOverloaded):
            await anext(Generation(endless, request, spell, wait=0.01, is_patient=True).chunks())

    asyncio.run(main())
