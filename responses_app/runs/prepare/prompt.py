"""A turn as the engine is told it: its tokens, its images, and how long both are together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from responses_app.store.log.records import ImageBytes

# Of one prompt: decoded, its images are in memory together, three bytes a pixel.
MOST_PIXELS = 200_000_000
# As large as OpenAI lets an image of `detail: low` be, on each side.
LOW_SIDE = 512


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """`length` counts an image with as many tokens as it is to the model, if `measured`; else as its placeholder alone."""

    tokens: Sequence[int]
    images: Sequence[bytes]
    length: int
    measured: bool = True
    pixels: int = 0

    def fits(self, most: int) -> bool:
        """Whether it is no longer than so many tokens, and its images no larger than what may be told together."""
        return self.length <= most and self.pixels <= MOST_PIXELS

    def check_pixels(self) -> None:
        """Raises Invalid for images that are too large together."""
        if self.pixels > MOST_PIXELS:
            message = f"The images of the input have {self.pixels:,} pixels; up to {MOST_PIXELS:,} in all are taken."
            raise InvalidRequest(message, param="input", code="image_too_large")


@dataclass(frozen=True, slots=True)
class PromptRenderer:
    """Renders for one model; `images` are those of all items that may be told.

    With `measure` they are counted even where that takes a generation.
    """

    engine: Engine
    dialect: Dialect
    images: ImageBytes
    measure: bool
    project: str
    # What a prompt shows of each image: the bytes and the number of pixels. It is rendered again with fewer items.
    shown: dict[content.ImageReference, tuple[bytes, int]] = field(default_factory=dict)

    async def of(self, turn: Turn, most: int) -> RenderedPrompt:
        """The prompt of a turn. Raises BadTurn, TooLong if it has more than `most` tokens, and what `measured` raises."""
        budget = Budget(most)
        rendering = partial(self.dialect.render, turn, budget)
        return await self.measured(turn, await long_work.run(self.project, is_long(turn), rendering, budget.stop))

    async def measured(self, turn: Turn, tokens: Sequence[int]) -> RenderedPrompt:
        """The prompt of a turn that was rendered. Raises BadTurn for an image that is not kept, Invalid, EngineDown."""
        is_large = len(turn.items) > long_work.LONG_ITEMS
        shown = await long_work.apart(self.project, is_large, lambda: list(content.images(turn.items)))
        if not shown:
            return RenderedPrompt(tokens, (), len(tokens))
        seen = [await self._check_vision(image) for image in shown]
        found, pixels = [data for data, _ in seen], sum(area for _, area in seen)
        if pixels > MOST_PIXELS or not (self.measure or self.engine.counts_cheaply):
            return RenderedPrompt(tokens, found, len(tokens), measured=False, pixels=pixels)
        try:
            return RenderedPrompt(tokens, found, await self.engine.count_tokens(tokens, found), pixels=pixels)
        except RequestRejected as error:
            if not self.engine.counts_cheaply:
                # Such an engine cannot be asked how long a prompt is that is too long for it.
                return RenderedPrompt(tokens, found, max(len(tokens), self.engine.max_model_len), pixels=pixels)
            raise InvalidRequest(
                f"The model does not take these images: {error}", param="input", code="invalid_image"
            ) from error

    async def _check_vision(self, image: content.ImageReference) -> tuple[bytes, int]:
        """The bytes that are told for an image, and how many pixels these have."""
        key = replace(image, path="")
        if key not in self.shown:
            self.shown[key] = await self._prefill_only(image)
        return self.shown[key]

    async def _prefill_only(self, image: content.ImageReference) -> tuple[bytes, int]:
        data = self.images.get((image.item, image.url))
        if data is None:
            raise UnsupportedInput("The image is not kept any more.", image.path, "image_file_not_found")
        try:
            if image.detail == "low":
                data = await decode_pool.shrink(self.project, data, LOW_SIDE)
            return data, (await decode_pool.check(self.project, data)).area
        except InvalidImage as error:
            raise UnsupportedInput(str(error), image.path, error.code) from error
        except DecoderBusy as error:
            raise RateLimited(str(error)) from error


def is_long(turn: Turn) -> bool:
    """Whether rendering the turn takes more than some ten milliseconds."""
    if len(turn.items) > long_work.LONG_ITEMS or len(turn.tools) > long_work.LONG_TOOLS:
        return True
    return len(turn.instructions or "") + text_size(turn.items) + text_size(turn.tools) > long_work.LONG_TEXT


def text_size(value: object) -> int:
    """The number of characters of all texts in items or tools."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(text_size, value.values()))
    return sum(map(text_size, value)) if isinstance(value, Sequence) else 0
