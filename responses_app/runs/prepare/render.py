"""Stage `render`: the dialect renders the turn to tokens and builds the constraint of the answer; prompts with images and length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from responses_app.dialects import content
from responses_app.dialects.base import Dialect, Turn, UnsupportedInput
from responses_app.dialects.constraints.structural_tag import widen_white_space
from responses_app.dialects.text.budget import Budget, TooLong
from responses_app.engine_interface import Constraint, Engine, RequestRejected
from responses_app.errors import InvalidRequest
from responses_app.images.decode import InvalidImage
from responses_app.runs.prepare import long_work
from responses_app.runs.prepare.convert import ConvertedTurn
from responses_app.runs.prepare.media import DecodedImages, key_of
from responses_app.runs.prepare.prompt_context import PromptContext

# Pixels of all images of one prompt: decoded, they are in memory together, three bytes a pixel.
MAX_PIXELS = 200_000_000


@dataclass(frozen=True, slots=True)
class Rendering:
    """Rendered turn: the tokens, or TooLong in place of too many; and the constraint of the answer."""

    tokens: Sequence[int] | TooLong
    constraint: Constraint | None


async def render(context: PromptContext, converted: ConvertedTurn) -> Rendering:
    """Render the turn, in the thread where work of its size belongs. Raises InvalidRequest, ServiceUnavailable, RateLimited."""
    with context.map_errors(converted.turn.items):
        budget = Budget(context.served.engine.max_model_len - 1)
        rendering = partial(_render, context.dialect, converted.turn, budget)
        return await long_work.run_sized(context.create_request.project, converted.size, rendering, budget.stop)


def _render(dialect: Dialect, turn: Turn, budget: Budget) -> Rendering:
    """Render the prompt and the constraint. Raises UnsupportedInput, Stopped."""
    try:
        return Rendering(dialect.render(turn, budget), constrain(dialect, turn))
    except TooLong as error:
        return Rendering(error, constrain(dialect, turn))


def constrain(dialect: Dialect, turn: Turn) -> Constraint | None:
    """Build the constraint of the answer, None for any text. Raises UnsupportedInput."""
    constraint = dialect.constrain(turn)
    if constraint is None or turn.json_whitespace != "any":
        return constraint
    return replace(constraint, value=widen_white_space(constraint.value))


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
    """Renderer of prompts for a model. `decoded` are the decoded images of all items that may be in a prompt.

    With `measure` the tokens of images are counted even if the engine needs a generation for that.
    """

    engine: Engine
    dialect: Dialect
    decoded: DecodedImages
    measure: bool
    project: str

    async def of(self, turn: Turn, most: int) -> RenderedPrompt:
        """Render the prompt of a turn. Raises UnsupportedInput, TooLong above `most` tokens, and the errors of `measured`."""
        budget = Budget(most)
        rendering = partial(self.dialect.render, turn, budget)
        return await self.measured(
            turn, await long_work.run_sized(self.project, long_work.size_of(turn), rendering, budget.stop)
        )

    async def measured(self, turn: Turn, tokens: Sequence[int]) -> RenderedPrompt:
        """Return the prompt of a rendered turn with images. Raises UnsupportedInput, InvalidRequest, EngineUnavailable."""
        is_large = len(turn.items) > long_work.LONG_ITEMS
        shown = await long_work.apart(self.project, is_large, lambda: list(content.iter_images(turn.items)))
        if not shown:
            return RenderedPrompt(tokens, (), len(tokens))
        seen = [self._decoded(image) for image in shown]
        images, pixels = [data for data, _ in seen], sum(area for _, area in seen)
        if pixels > MAX_PIXELS or not (self.measure or self.engine.counts_cheaply):
            return RenderedPrompt(tokens, images, len(tokens), measured=False, pixels=pixels)
        try:
            return RenderedPrompt(tokens, images, await self.engine.count_tokens(tokens, images), pixels=pixels)
        except RequestRejected as error:
            if not self.engine.counts_cheaply:
                # Such an engine cannot count a prompt that is too long for it.
                return RenderedPrompt(tokens, images, max(len(tokens), self.engine.max_model_len), pixels=pixels)
            raise InvalidRequest(
                f"The model does not take these images: {error}", param="input", code="invalid_image"
            ) from error

    def _decoded(self, image: content.ImageReference) -> tuple[bytes, int]:
        """Return the bytes and the number of pixels of an image as the prompt shows it. Raises UnsupportedInput."""
        decoded_image = self.decoded.get(key_of(image))
        if decoded_image is None:
            raise UnsupportedInput("The image is not stored any more.", image.path, "image_file_not_found")
        if isinstance(decoded_image, InvalidImage):
            raise UnsupportedInput(str(decoded_image), image.path, decoded_image.code) from decoded_image
        return decoded_image
