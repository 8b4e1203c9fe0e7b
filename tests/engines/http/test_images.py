"""Images sent to a real `vllm serve` through the token endpoint, and their token counts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from responses_app.dialects.base import Turn
from responses_app.dialects.registry import open_dialect
from responses_app.engine_interface import EngineError
from responses_app.engines.http.client import HttpVllm
from tests.support.api.image_case import part, png, user
from tests.support.engines import image_checkpoint as seeing
from tests.support.engines.generate import cached, collect, make_request, tokens
from tests.support.engines.requirements import START_LIMIT_S
from tests.support.engines.vllm_server import connected, serving

pytestmark = [pytest.mark.engine, pytest.mark.timeout(START_LIMIT_S)]

RED, BLUE = (png(colour, (seeing.SIDE, seeing.SIDE)) for colour in ("red", "blue"))
GREEDY = {"temperature": 0.0, "ignore_eos": True}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return seeing.write(tmp_path_factory.mktemp("seeing"))


@pytest.fixture(scope="module")
def engine(runner: asyncio.Runner, model: Path) -> Iterator[HttpVllm]:
    with serving(model) as server, connected(runner, *server) as engine:
        yield engine


def test_output_depends_on_the_image_and_its_tokens_are_counted(runner: asyncio.Runner, engine: HttpVllm, model: Path) -> None:
    dialect = open_dialect(str(model))
    prompt = dialect.render(Turn([user("Look:" * 40, part())], date(2026, 1, 1)))
    outputs = {}
    assert dialect.supports_images
    assert engine.supports_images
    # Longer than a block of the prefix cache, so that counting without a salt would show up as cached tokens.
    length = len(prompt) - 1 + seeing.IMAGE_TOKENS
    assert length > 128
    assert runner.run(engine.count_tokens(prompt, [RED])) == length
    for name, picture in (("red", RED), ("blue", BLUE), ("red again", RED)):
        chunks = runner.run(collect(engine, make_request(prompt, 8, sampling=GREEDY, images=[picture])))
        outputs[name] = tokens(chunks)
        assert chunks[-1].prompt == length
        assert (cached(chunks) or 0) == 0 or name != "red"
    assert outputs["red"] == outputs["red again"] != outputs["blue"]


def test_images_without_placeholders_are_an_error(runner: asyncio.Runner, engine: HttpVllm, model: Path) -> None:
    prompt = open_dialect(str(model)).render(Turn([user("Look:", part())], date(2026, 1, 1)))
    # vLLM answers HTTP 500. A dialect checks its placeholders, so this never happens in a run.
    with pytest.raises(EngineError, match="prompt replacement"):
        runner.run(collect(engine, make_request(prompt, 8, images=[RED, BLUE])))
