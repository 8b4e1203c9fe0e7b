"""Rendered prompts: tokens, images, and the total length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from responses_app.dialects import content
from responses_app.dialects.base import Dialect, Turn, UnsupportedInput
from responses_app.dialects.text.budget import Budget
from responses_app.engine_interface import Engine, RequestRejected
from responses_app.errors import InvalidRequest, RateLimited
from responses_app.images import decode_pool
from responses_app.images.decode import InvalidImage
from responses_app.images.decode_pool import DecoderBusy
from responses_app.runs.prepare import long_work
from responses_app.runs.prepare.long_work import WorkSize
from responses_app.store.content.images import ImageBytes

# Pixels of all images of one prompt: decoded, they are in memory together, three bytes a pixel.
MAX_PIXELS = 200_000_000
# Longest side of an image with `detail: low` in pixels, as at OpenAI.
MAX_LOW_DETAIL_SIDE = 512


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """Prompt of a turn. With `measured`, `length` counts the tokens of each image; otherwise each image counts as a single placeholder."""

    tokens: Sequence[int]
    images: Sequence[bytes]
    length: int
    measured: bool = True
    pixels: int = 0

    def fits(self, most: int) -> bool:
        """Return True if the prompt has at most `most` tokens and the images together at most MAX_PIXELS pixels."""
        return self.length <= most and self.pixels <= MAX_PIXELS

    def check_pixels(self) -> None:
        """Check the pixels of all images together. Raises InvalidRequest."""
        if self.pixels > MAX_PIXELS:
            message = f"The images of the input have {self.pixels:,} pixels; up to {MAX_PIXELS:,} in all are taken."
            raise InvalidRequest(message, param="input", code="image_too_large")


@dataclass(frozen=True, slots=True)
class PromptRenderer:
    """Renderer of prompts for a model. `images` are the images of all items that may be in a prompt.

    With `measure` the tokens of images are counted even if the engine needs a generation for that.
    """

    engine: Engine
    dialect: Dialect
    images: ImageBytes
    measure: bool
    project: str
    # Bytes and number of pixels of each image, for prompts that are rendered again with fewer items.
    shown: dict[content.ImageReference, tuple[bytes, int]] = field(default_factory=dict)

    async def of(self, turn: Turn, most: int) -> RenderedPrompt:
        """Render the prompt of a turn. Raises UnsupportedInput, TooLong above `most` tokens, and the errors of `measured`."""
        budget = Budget(most)
        rendering = partial(self.dialect.render, turn, budget)
        return await self.measured(turn, await long_work.run_sized(self.project, size_of(turn), rendering, budget.stop))

    async def measured(self, turn: Turn, tokens: Sequence[int]) -> RenderedPrompt:
        """Return the prompt of a rendered turn with images. Raises UnsupportedInput, InvalidRequest, EngineUnavailable."""
        is_large = len(turn.items) > long_work.LONG_ITEMS
        shown = await long_work.apart(self.project, is_large, lambda: list(content.iter_images(turn.items)))
        if not shown:
            return RenderedPrompt(tokens, (), len(tokens))
        seen = [await self._check_vision(image) for image in shown]
        found, pixels = [data for data, _ in seen], sum(area for _, area in seen)
        if pixels > MAX_PIXELS or not (self.measure or self.engine.counts_cheaply):
            return RenderedPrompt(tokens, found, len(tokens), measured=False, pixels=pixels)
        try:
            return RenderedPrompt(tokens, found, await self.engine.count_tokens(tokens, found), pixels=pixels)
        except RequestRejected as error:
            if not self.engine.counts_cheaply:
                # Such an engine cannot count a prompt that is too long for it.
                return RenderedPrompt(tokens, found, max(len(tokens), self.engine.max_model_len), pixels=pixels)
            raise InvalidRequest(
                f"The model does not take these images: {error}", param="input", code="invalid_image"
            ) from error

    async def _check_vision(self, image: content.ImageReference) -> tuple[bytes, int]:
        """Return the bytes and the number of pixels of an image as the prompt shows it."""
        key = replace(image, path="")
        if key not in self.shown:
            self.shown[key] = await self._prefill_only(image)
        return self.shown[key]

    async def _prefill_only(self, image: content.ImageReference) -> tuple[bytes, int]:
        data = self.images.get((image.item, image.url))
        if data is None:
            raise UnsupportedInput("The image is not stored any more.", image.path, "image_file_not_found")
        try:
            if image.detail == "low":
                data = await decode_pool.shrink(self.project, data, MAX_LOW_DETAIL_SIDE)
            return data, (await decode_pool.check(self.project, data)).area
        except InvalidImage as error:
            raise UnsupportedInput(str(error), image.path, error.code) from error
        except DecoderBusy as error:
            raise RateLimited(str(error)) from error


def size_of(turn: Turn) -> WorkSize:
    """Return the size of the work of rendering `turn`. Many items or tools are long work, whatever their texts."""
    items, tools = len(turn.items), len(turn.tools)
    if items > long_work.LONG_ITEMS or tools > long_work.LONG_TOOLS:
        return WorkSize.LONG
    characters = len(turn.instructions or "") + text_size(turn.items) + text_size(turn.tools) + text_size(turn.format)
    return long_work.work_size(characters, items, tools)


def text_size(value: object) -> int:
    """Count the characters of all texts in items or tools."""
    if isinstance(value, str):
        return len(value)
    # The types of JSON, as a check of an abstract class takes ten times as long.
    if isinstance(value, dict):
        return sum(map(text_size, value.values()))
    return sum(map(text_size, value)) if isinstance(value, list | tuple) else 0
