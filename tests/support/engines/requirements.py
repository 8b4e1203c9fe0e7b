"""Common requirements of all real engines, as a base class of tests."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any

import pytest

from responses_app.engine_interface import Constraint, Engine, RequestRejected
from tests.support.engines import constraints as cases
from tests.support.engines import image_checkpoint as checkpoint
from tests.support.engines.generate import cached, collect, make_request, tokens
from tests.support.waiting import eventually

LONG: dict[str, Any] = {"max_tokens": 500, "sampling": {"ignore_eos": True}}
# Tokens of prompts that the prefix cache of an engine cannot have from an earlier test.
UNUSED = itertools.count(7)
STOP_LIMIT_S = 2.0
# Limit of the first test of a module, during which the engine starts: 20 s on an idle machine, up to 300 s on a busy one.
START_LIMIT_S = 1200.0

Running = Callable[[], float]


@cache
def tokenizer() -> Any:
    """Return the tokenizer of the checkpoint. At its first use transformers is imported, which takes seconds."""
    return checkpoint.tokenizer()


async def by_closing(engine: Engine, running: Running) -> None:
    chunks = engine.generate(make_request(**LONG))
    received = tokens([await anext(chunks)])
    assert running() == 1
    await chunks.aclose()
    assert len(received) < 100


async def by_cancelling(engine: Engine, running: Running) -> None:
    task = asyncio.create_task(collect(engine, make_request(**LONG)))
    await eventually(lambda: running() or task.done(), poll_s=0.02)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


STOP_METHODS: Mapping[str, Callable[[Engine, Running], Awaitable[None]]] = {"close": by_closing, "cancel": by_cancelling}


class EngineRequirements:
    """Common requirements. The module of a subclass has the fixtures `engine`, `runner` and `running` (count of running requests)."""

    def test_generation_has_max_tokens(self, runner: asyncio.Runner, engine: Engine) -> None:
        chunks = runner.run(collect(engine, make_request(max_tokens=12, sampling={"ignore_eos": True})))
        assert len(tokens(chunks)) == 12
        assert [chunk.finish for chunk in chunks] == [None] * (len(chunks) - 1) + ["length"]

    def test_engine_knows_the_context_length(self, engine: Engine) -> None:
        assert engine.max_model_len == checkpoint.MAX_MODEL_LEN

    def test_full_context_ends_with_length(self, runner: asyncio.Runner, engine: Engine) -> None:
        prompt = [1] * (checkpoint.MAX_MODEL_LEN - 6)
        chunks = runner.run(collect(engine, make_request(prompt, 1000, sampling={"ignore_eos": True})))
        assert (len(tokens(chunks)), chunks[-1].finish) == (6, "length")

    @pytest.mark.parametrize("sampling", [{"temperature": 0.0}, {"temperature": 1.0, "seed": 5}])
    def test_seeded_and_greedy_output_repeats(self, runner: asyncio.Runner, engine: Engine, sampling: dict[str, Any]) -> None:
        first, second = (tokens(runner.run(collect(engine, make_request(max_tokens=8, sampling=sampling)))) for _ in range(2))
        assert first == second

    def test_bias_applies_to_continued_output(self, runner: asyncio.Runner, engine: Engine) -> None:
        sampling = {"temperature": 0.0, "frequency_penalty": 0.5, "ignore_eos": True}
        whole = tokens(runner.run(collect(engine, make_request([1, 2, 3], 16, sampling=sampling))))
        bias = {token: -0.5 * count for token, count in Counter(whole[:8]).items()}
        continued = runner.run(collect(engine, make_request([1, 2, 3, *whole[:8]], 8, sampling={**sampling, "bias": bias})))
        assert tokens(continued) == whole[8:]

    def test_top_k_of_one_and_a_large_bias_leave_one_token(self, runner: asyncio.Runner, engine: Engine) -> None:
        greedy = tokens(runner.run(collect(engine, make_request(max_tokens=1, sampling={"temperature": 0.0}))))
        for seed in range(4):
            first = make_request(max_tokens=1, sampling={"temperature": 1.0, "top_k": 1, "seed": seed})
            assert tokens(runner.run(collect(engine, first))) == greedy
        biased = make_request(max_tokens=4, sampling={"temperature": 1.0, "bias": {7: 100.0}, "ignore_eos": True})
        assert tokens(runner.run(collect(engine, biased))) == [7] * 4

    def test_min_p_of_one_leaves_the_most_likely_token(self, runner: asyncio.Runner, engine: Engine) -> None:
        greedy = tokens(runner.run(collect(engine, make_request(max_tokens=1, sampling={"temperature": 0.0}))))
        for seed in range(4):
            sampling = {"temperature": 1.0, "min_p": 1.0, "seed": seed}
            assert tokens(runner.run(collect(engine, make_request(max_tokens=1, sampling=sampling)))) == greedy

    def test_repetition_penalty_counts_repeated_tokens(self, runner: asyncio.Runner, engine: Engine) -> None:
        greedy = {"temperature": 0.0, "ignore_eos": True}
        plain, penalized = (
            tokens(
                runner.run(collect(engine, make_request(max_tokens=200, sampling={**greedy, "repetition_penalty": penalty})))
            )
            for penalty in (1.0, 2.0)
        )
        assert len(set(penalized)) > len(set(plain))

    def test_stop_token_is_included(self, runner: asyncio.Runner, engine: Engine) -> None:
        greedy = tokens(runner.run(collect(engine, make_request(sampling={"temperature": 0.0}))))
        stopped = runner.run(collect(engine, make_request(sampling={"temperature": 0.0, "stop_token_ids": [greedy[0]]})))
        assert (tokens(stopped), stopped[-1].finish) == ([greedy[0]], "stop")

    def test_end_of_sequence_token_is_included(self, runner: asyncio.Runner, engine: Engine) -> None:
        chunks = runner.run(collect(engine, make_request(constraint=Constraint("regex", "ab"))))
        assert tokens(chunks) == [*tokenizer().encode("ab"), tokenizer().eos_token_id]
        assert chunks[-1].finish == "stop"

    def test_constraint_ends_with_the_stop_token_of_the_request(self, runner: asyncio.Runner, engine: Engine) -> None:
        stop = tokenizer().convert_tokens_to_ids("<|stop|>")
        request = make_request(constraint=Constraint("regex", "ab"), sampling={"stop_token_ids": [stop]})
        *output, last = tokens(runner.run(collect(engine, request)))
        assert output == tokenizer().encode("ab")
        assert last in (stop, tokenizer().eos_token_id)

    @pytest.mark.parametrize("name", cases.CONSTRAINTS)
    def test_constraint_holds_from_the_first_token(self, runner: asyncio.Runner, engine: Engine, name: str) -> None:
        constraint, pattern = cases.CONSTRAINTS[name]
        *output, last = tokens(runner.run(collect(engine, make_request(max_tokens=200, constraint=constraint))))
        assert last == tokenizer().eos_token_id
        assert re.fullmatch(pattern, tokenizer().decode(output))

    @pytest.mark.parametrize("name", cases.BAD)
    def test_invalid_request_is_refused(self, runner: asyncio.Runner, engine: Engine, running: Running, name: str) -> None:
        with pytest.raises(RequestRejected):
            runner.run(collect(engine, make_request(**cases.BAD[name])))
        assert running() == 0

    def test_log_probabilities_are_sorted(self, runner: asyncio.Runner, engine: Engine) -> None:
        chunks = runner.run(collect(engine, make_request(max_tokens=3, sampling={"logprobs": 3, "ignore_eos": True})))
        entries = [entry for chunk in chunks for entry in chunk.logprobs]
        assert [entry.token for entry in entries] == tokens(chunks)
        for entry in entries:
            values = [value for _, value in entry.top]
            assert len(values) == 3
            assert values == sorted(values, reverse=True)
            assert entry.logprob <= values[0] <= 0.0

    def test_a_prompt_that_it_was_to_read_is_cached(self, runner: asyncio.Runner, engine: Engine) -> None:
        async def go() -> int | None:
            prompt = [next(UNUSED)] * 300
            await engine.prefill(make_request(prompt, 20, cache_salt="warm"))
            return cached(await collect(engine, make_request(prompt, 1, cache_salt="warm")))

        assert (runner.run(go()) or 0) > 200

    def test_number_of_cached_tokens_is_reported(self, runner: asyncio.Runner, engine: Engine) -> None:
        async def main() -> list[int | None]:
            prompt, salts = [next(UNUSED)] * 300, (None, None, "mine", "mine")
            return [cached(await collect(engine, make_request(prompt, 1, cache_salt=salt))) for salt in salts]

        first, again, salted, salted_again = runner.run(main())
        assert (first, salted) == (0, 0)
        assert again is not None
        assert again >= 128
        assert salted_again == again

    def test_priority_is_accepted(self, runner: asyncio.Runner, engine: Engine) -> None:
        assert len(tokens(runner.run(collect(engine, make_request(priority=-5, max_tokens=1))))) == 1

    @pytest.mark.parametrize("way", STOP_METHODS)
    def test_stopped_request_leaves_the_engine_within_two_seconds(
        self, runner: asyncio.Runner, engine: Engine, running: Running, way: str
    ) -> None:
        runner.run(asyncio.wait_for(STOP_METHODS[way](engine, running), 30))
        runner.run(eventually(lambda: not running(), limit_s=STOP_LIMIT_S, poll_s=0.05))

    def test_requests_finish_beside_an_unfinished_request(self, runner: asyncio.Runner, engine: Engine) -> None:
        async def main() -> list[int]:
            held = engine.generate(make_request(max_tokens=400, constraint=Constraint("regex", "a{300}")))
            await anext(held)
            brief = (collect(engine, make_request(max_tokens=5, sampling={"ignore_eos": True})) for _ in range(20))
            received = await asyncio.gather(*brief)
            await held.aclose()
            return [len(tokens(chunks)) for chunks in received]

        assert runner.run(main()) == [5] * 20
