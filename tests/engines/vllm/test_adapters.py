"""LoRA adapters in the engine: each has its own answers, also in a single batch with the base model."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from responses_app.engine_interface import GenerateRequest, RequestRejected, Sampling
from responses_app.engines import orphan_guard
from responses_app.engines.adapters import AdapterEngine
from responses_app.engines.registry import open_engine
from responses_app.engines.vllm.inprocess import InProcessVllm
from tests.support.engines.constraints import PIXEL
from tests.support.engines.generate import collect, make_request
from tests.support.engines.text_checkpoint import write_adapter

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
PROMPT = GenerateRequest("", [5, 6, 7, 8], Sampling(12, temperature=0))


@pytest.fixture(scope="module")
def engine(runner: asyncio.Runner, tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessVllm]:
    orphan_guard.guard_children()
    adapter = write_adapter(tmp_path_factory.mktemp("adapters") / "loud")
    engine = open_engine(f"vllm://{tiny}?lora.loud={adapter}")
    assert isinstance(engine, InProcessVllm)
    runner.run(engine.start())
    yield engine
    runner.run(engine.close())
    del engine
    gc.collect()


async def generate(engine: InProcessVllm | AdapterEngine, uid: str) -> list[int]:
    return [token async for chunk in engine.generate(replace(PROMPT, id=uid)) for token in chunk.tokens]


def test_each_adapter_answers_for_itself_also_in_one_batch_with_the_base_model(
    engine: InProcessVllm, runner: asyncio.Runner
) -> None:
    adapter = AdapterEngine(engine, "loud")
    alone = [runner.run(generate(one, uid)) for one, uid in ((engine, "a"), (adapter, "b"), (engine, "c"))]
    assert alone[0] == alone[2] != alone[1]

    async def together() -> list[list[int]]:
        return await asyncio.gather(*(generate(one, uid) for one, uid in ((engine, "d"), (adapter, "e"), (engine, "f"))))

    assert runner.run(together()) == alone


def test_an_unknown_adapter_is_refused(engine: InProcessVllm, runner: asyncio.Runner) -> None:
    with pytest.raises(RequestRejected, match="no LoRA adapter 'quiet'"):
        runner.run(generate(AdapterEngine(engine, "quiet"), "g"))
    assert runner.run(engine.is_healthy())


def test_a_picture_for_a_model_without_eyes_is_refused(engine: InProcessVllm, runner: asyncio.Runner) -> None:
    assert not engine.supports_images
    with pytest.raises(RequestRejected):
        runner.run(collect(engine, make_request(images=[PIXEL])))
