"""vLLM in this process: what goes in, what comes out, and that it ends when it should."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from responses_app.engines import guard, open_engine
from responses_app.engines.arguments import BadOption
from responses_app.engines.border import BadPrompt, Chunk, Constraint, EngineDown
from responses_app.engines.embedded import Embedded
from tests.engines import cases, checkpoint
from tests.engines.listening import ask, cached, hear, tokens

# vLLM and torch warn of what is theirs.
pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(240)]

TOKENIZER = checkpoint.tokenizer()
EOS = TOKENIZER.eos_token_id
STOP = TOKENIZER.convert_tokens_to_ids("<|stop|>")


@pytest.fixture(scope="module")
def engine(runner: asyncio.Runner, tiny: Path) -> Iterator[Embedded]:
    guard.adopt()
    engine = open_engine(f"vllm://{tiny}")
    assert isinstance(engine, Embedded)
    runner.run(engine.start())
    yield engine
    runner.run(engine.close())
    # What the engine has left open is complained about here, and not in whichever test the collector runs next.
    del engine
    gc.collect()


def processes() -> dict[str, int]:
    """vLLM's processes that we own, title -> pid."""
    titles = {Path(f"/proc/{pid}/cmdline").read_text().partition("\0")[0].strip(): pid for pid in guard.survivors(os.getpid())}
    return {title: pid for title, pid in titles.items() if title.startswith("VLLM::")}


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_it_generates_as_many_tokens_as_asked_for(runner: asyncio.Runner, engine: Embedded) -> None:
    chunks = runner.run(hear(engine, ask(max_tokens=12, sampling={"ignore_eos": True})))
    assert len(tokens(chunks)) == 12
    assert [chunk.finish for chunk in chunks] == [None] * (len(chunks) - 1) + ["length"]


def test_it_knows_the_context_of_the_model(engine: Embedded) -> None:
    assert engine.max_model_len == checkpoint.MAX_MODEL_LEN


def test_it_ends_with_length_where_the_context_is_full(runner: asyncio.Runner, engine: Embedded) -> None:
    prompt = [1] * (checkpoint.MAX_MODEL_LEN - 6)
    chunks = runner.run(hear(engine, ask(prompt, 1000, sampling={"ignore_eos": True})))
    assert (len(tokens(chunks)), chunks[-1].finish) == (6, "length")


def test_it_repeats_itself_at_temperature_zero_and_under_a_seed(runner: asyncio.Runner, engine: Embedded) -> None:
    async def twice(**sampling: Any) -> bool:
        first, second = [tokens(await hear(engine, ask(max_tokens=8, sampling=sampling))) for _ in range(2)]
        return first == second

    assert runner.run(twice(temperature=0.0))
    assert runner.run(twice(temperature=1.0, seed=5))


def test_it_includes_the_stop_token_that_ended_it(runner: asyncio.Runner, engine: Embedded) -> None:
    greedy = tokens(runner.run(hear(engine, ask(sampling={"temperature": 0.0}))))
    stopped = runner.run(hear(engine, ask(sampling={"temperature": 0.0, "stop_token_ids": [greedy[0]]})))
    assert (tokens(stopped), stopped[-1].finish) == ([greedy[0]], "stop")


def test_it_includes_the_end_of_sequence_token(runner: asyncio.Runner, engine: Embedded) -> None:
    chunks = runner.run(hear(engine, ask(constraint=Constraint("regex", "ab"))))
    assert tokens(chunks) == [*TOKENIZER.encode("ab"), EOS]
    assert chunks[-1].finish == "stop"


def test_it_lets_a_constraint_end_with_the_stop_token_of_the_request(runner: asyncio.Runner, engine: Embedded) -> None:
    request = ask(constraint=Constraint("regex", "ab"), sampling={"stop_token_ids": [STOP]})
    *said, last = tokens(runner.run(hear(engine, request)))
    assert said == TOKENIZER.encode("ab")
    assert last in (STOP, EOS)


@pytest.mark.parametrize("name", cases.CONSTRAINTS)
def test_it_keeps_to_the_constraint_from_the_first_token(runner: asyncio.Runner, engine: Embedded, name: str) -> None:
    constraint, pattern = cases.CONSTRAINTS[name]
    *said, last = tokens(runner.run(hear(engine, ask(max_tokens=200, constraint=constraint))))
    assert last == EOS
    assert re.fullmatch(pattern, TOKENIZER.decode(said))


@pytest.mark.parametrize("name", cases.BAD)
def test_it_refuses_what_cannot_be_done(runner: asyncio.Runner, engine: Embedded, name: str) -> None:
    with pytest.raises(BadPrompt):
        runner.run(hear(engine, ask(**cases.BAD[name])))
    assert engine.running() == 0


def test_it_refuses_a_schema_that_would_be_enforced_in_part_only(runner: asyncio.Runner, engine: Embedded) -> None:
    with pytest.raises(BadPrompt, match="not supported"):
        runner.run(hear(engine, ask(constraint=Constraint("json", {"type": "integer", "multipleOf": 3}))))


def test_it_refuses_an_id_that_is_running(runner: asyncio.Runner, engine: Embedded) -> None:
    async def main() -> None:
        chunks = engine.generate(ask(max_tokens=400, id="twin"))
        await anext(chunks)
        with pytest.raises(BadPrompt, match="twin"):
            await hear(engine, ask(id="twin"))
        await chunks.aclose()

    runner.run(main())


def test_it_tells_log_probabilities_best_first(runner: asyncio.Runner, engine: Embedded) -> None:
    chunks = runner.run(hear(engine, ask(max_tokens=3, sampling={"logprobs": 3, "ignore_eos": True})))
    entries = [entry for chunk in chunks for entry in chunk.logprobs]
    assert [entry.token for entry in entries] == tokens(chunks)
    for entry in entries:
        values = [value for _, value in entry.top]
        assert len(values) == 3
        assert values == sorted(values, reverse=True)
        assert entry.logprob <= values[0] <= 0.0


def test_it_tells_how_much_of_the_prompt_was_cached(runner: asyncio.Runner, engine: Embedded) -> None:
    async def main() -> list[int | None]:
        prompt = [9] * 300
        salts = (None, None, "mine", "mine")
        return [cached(await hear(engine, ask(prompt, 1, cache_salt=salt))) for salt in salts]

    first, again, salted, salted_again = runner.run(main())
    assert (first, salted) == (0, 0)
    assert again is not None
    assert again >= 128
    assert salted_again == again


def test_it_takes_priorities(runner: asyncio.Runner, engine: Embedded) -> None:
    chunks = runner.run(hear(engine, ask(priority=-5, max_tokens=1)))
    assert len(tokens(chunks)) == 1


@pytest.mark.parametrize("way", ["close", "cancel"])
def test_it_stops_the_engine_within_two_seconds(runner: asyncio.Runner, engine: Embedded, way: str) -> None:
    async def by_closing() -> None:
        chunks = engine.generate(ask(max_tokens=500, sampling={"ignore_eos": True}))
        await anext(chunks)
        assert engine.running() == 1
        await chunks.aclose()

    async def by_cancelling() -> None:
        task = asyncio.create_task(hear(engine, ask(max_tokens=500, sampling={"ignore_eos": True})))
        await asyncio.sleep(0.1)
        assert engine.running() == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    runner.run({"close": by_closing, "cancel": by_cancelling}[way]())
    assert engine.running() == 0
    # The worker looks out for more work for a second, then it must be idle; 500 tokens would have kept it busy for longer.
    time.sleep(1.2)
    worker = processes()["VLLM::Worker"]
    before = cpu_seconds(worker)
    time.sleep(0.5)
    assert cpu_seconds(worker) - before < 0.1


def test_it_leaves_the_environment_of_other_children_alone(engine: Embedded) -> None:
    assert "omp" not in os.environ.get("LD_PRELOAD", "")


def test_it_names_options_that_vllm_does_not_know(runner: asyncio.Runner, engine: Embedded, tiny: Path) -> None:
    for query, words in {
        "max_model_lem=5": "max_model_lem.*allowed.*max_model_len",
        "max_model_len=few": "max-model-len.*few",
        "enforce_eager=perhaps": "either 1 or 0",
        "model=other": "unknown option 'model'",
    }.items():
        with pytest.raises(BadOption, match=words):
            runner.run(open_engine(f"vllm://{tiny}?{query}").start())


def test_it_says_that_a_model_cannot_be_loaded(runner: asyncio.Runner, engine: Embedded, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "unheard_of"}')
    with pytest.raises(EngineDown, match="does not start"):
        runner.run(open_engine(f"vllm://{tmp_path}").start())


def test_it_refuses_a_picture_that_is_none(runner: asyncio.Runner, engine: Embedded) -> None:
    with pytest.raises(BadPrompt, match="image 1 cannot be decoded"):
        runner.run(hear(engine, ask(images=[cases.PIXEL, b"junk"])))


def test_it_gives_up_a_start_that_is_cancelled(runner: asyncio.Runner, engine: Embedded, tiny: Path) -> None:
    async def main() -> None:
        other = open_engine(f"vllm://{tiny}")
        before = set(multiprocessing.active_children())
        starting = asyncio.create_task(other.start())
        for _ in range(300):
            await asyncio.sleep(0.1)
            if set(multiprocessing.active_children()) - before:
                break
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        began = time.monotonic()
        await other.close()
        assert time.monotonic() - began < 10
        assert set(multiprocessing.active_children()) == before

    runner.run(main())
    assert runner.run(engine.alive())


def test_it_tells_when_the_core_dies_and_brings_it_back(runner: asyncio.Runner, engine: Embedded) -> None:
    async def main() -> list[Chunk]:
        chunks = engine.generate(ask(max_tokens=500, sampling={"ignore_eos": True}))
        await anext(chunks)
        os.kill(processes()["VLLM::EngineCore"], 9)
        with pytest.raises(EngineDown):
            async for _ in chunks:
                pass
        assert not await engine.alive()
        with pytest.raises(EngineDown):
            await hear(engine, ask())
        for _ in range(600):
            if await engine.alive():
                break
            await asyncio.sleep(0.2)
        return await hear(engine, ask(max_tokens=2, sampling={"ignore_eos": True}))

    assert len(tokens(runner.run(main()))) == 2


def test_it_lets_go_of_everything_at_close(runner: asyncio.Runner, engine: Embedded) -> None:
    """The last test of the module: the fixture's own close finds nothing to do."""

    async def main() -> Chunk:
        task = asyncio.create_task(hear(engine, ask(max_tokens=500, sampling={"ignore_eos": True})))
        await asyncio.sleep(0.1)
        began = time.monotonic()
        await engine.close()
        assert time.monotonic() - began < 10
        return (await task)[-1]

    assert {"VLLM::EngineCore", "VLLM::Worker"} <= set(processes())
    assert runner.run(main()).finish == "abort"
    assert processes() == {}
    assert not runner.run(engine.alive())
