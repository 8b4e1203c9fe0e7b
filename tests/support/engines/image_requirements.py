"""Common requirements of all real engines that accept images, as a base class of tests."""

from __future__ import annotations

import asyncio
from datetime import date
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from responses_app.dialects.base import Turn
from responses_app.engine_interface import Engine, EngineError
from tests.support.api.image_case import part, png, user
from tests.support.dialects.open_dialect import open_dialect
from tests.support.engines import image_checkpoint as checkpoint
from tests.support.engines.generate import cached, collect, make_request, tokens

SIZE = (checkpoint.SIDE, checkpoint.SIDE)
RED, BLUE, WHITE = (png(colour, SIZE) for colour in ("red", "blue", "white"))
GREEDY = {"temperature": 0.0, "ignore_eos": True}


def transparent() -> bytes:
    """Return a picture in which nothing can be seen."""
    out = BytesIO()
    Image.new("RGBA", SIZE, (255, 0, 0, 0)).save(out, "PNG")
    return out.getvalue()


class ImageRequirements:
    """Common requirements. The module of a subclass has the fixtures `engine`, `runner` and `seeing` (folder of the checkpoint)."""

    def test_output_depends_on_the_image_and_its_tokens_are_counted(
        self, runner: asyncio.Runner, engine: Engine, seeing: Path
    ) -> None:
        dialect = open_dialect(str(seeing))
        prompt = dialect.render(Turn([user("Look:" * 40, part())], date(2026, 1, 1)))
        outputs = {}
        assert dialect.supports_images
        assert engine.supports_images
        # Longer than a block of the prefix cache, so that counting without a salt would show up as cached tokens.
        length = len(prompt) - 1 + checkpoint.IMAGE_TOKENS
        assert length > 128
        assert runner.run(engine.count_tokens(prompt, [RED])) == length
        pictures = {"red": RED, "blue": BLUE, "red again": RED, "white": WHITE, "transparent": transparent()}
        for name, picture in pictures.items():
            chunks = runner.run(collect(engine, make_request(prompt, 8, sampling=GREEDY, images=[picture])))
            outputs[name] = tokens(chunks)
            assert [chunk.prompt for chunk in chunks if chunk.prompt is not None] == [length]
            assert (cached(chunks) or 0) == 0 or name != "red"
        assert outputs["red"] == outputs["red again"] != outputs["blue"]
        assert outputs["transparent"] == outputs["white"] != outputs["red"]

    def test_images_without_placeholders_are_an_error(self, runner: asyncio.Runner, engine: Engine, seeing: Path) -> None:
        prompt = open_dialect(str(seeing)).render(Turn([user("Look:", part())], date(2026, 1, 1)))
        # vLLM's server answers HTTP 500. A dialect checks its placeholders, so this never happens in a run.
        with pytest.raises(EngineError, match="prompt replacement"):
            runner.run(collect(engine, make_request(prompt, 8, images=[RED, BLUE])))
