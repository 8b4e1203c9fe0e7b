"""Length of a prompt with images, and the search for the oldest items to drop until the prompt fits, for `truncation: auto`."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any, Final

from django.conf import settings

from responses_app.dialects.base import Dialect, Turn, UnsupportedInput
from responses_app.dialects.content import ImageReference, iter_images
from responses_app.dialects.text.budget import Budget, TooLong
from responses_app.dialects.text.token_cache import TokenCache
from responses_app.engine_interface import Engine, RequestRejected
from responses_app.errors import InvalidRequest
from responses_app.images.decode import InvalidImage
from responses_app.runs.prepare import long_work
from responses_app.runs.prepare.length.skipping import NeedsAllItems, count_early, skip_units
from responses_app.runs.prepare.media import DecodedImages, key_of
from responses_app.store.content.history import ConversationContext, SkippedItems

# Pixels of all images of one prompt: decoded, they are in memory together, three bytes a pixel.
MAX_PIXELS = 200_000_000
# Estimate: characters of text per token, and tokens of an item beside its text.
BYTES_OF_A_TOKEN = 4
FRAME_TOKENS = 4
# After so many guesses the search is binary.
GUESSES = 8
# Share of the context that is read beyond the items that fit, for `SkippedItems`: a quarter at most is free for the answer.
MARGIN = 0.375
# Roles whose messages are never dropped.
LASTING_ROLES = frozenset({"system", "developer"})


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


def render_turn(dialect: Dialect, turn: Turn, budget: Budget) -> tuple[Sequence[int], Sequence[ImageReference]]:
    """Render the tokens of a turn, and list the images. Raises UnsupportedInput, TooLong, Stopped."""
    return dialect.render(turn, budget), list(iter_images(turn.items))


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
        budget, size = Budget(most), long_work.size_of(turn.items, turn.tools, (turn.instructions, turn.format))
        rendering = partial(render_turn, self.dialect, turn, budget)
        return await self.measured(*await long_work.run_sized(self.project, size, rendering, budget.stop))

    async def measured(self, tokens: Sequence[int], shown: Sequence[ImageReference]) -> RenderedPrompt:
        """Return the prompt of a rendered turn with images. Raises UnsupportedInput, InvalidRequest, EngineUnavailable."""
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

    def _decoded(self, image: ImageReference) -> tuple[bytes, int]:
        """Return the bytes and the number of pixels of an image as the prompt shows it. Raises UnsupportedInput."""
        decoded_image = self.decoded.get(key_of(image))
        if decoded_image is None:
            raise UnsupportedInput("The image is not stored any more.", image.path, "image_file_not_found")
        if isinstance(decoded_image, InvalidImage):
            raise UnsupportedInput(str(decoded_image), image.path, decoded_image.code) from decoded_image
        return decoded_image


@dataclass(frozen=True, slots=True)
class TruncationPolicy:
    """Policy for prompts that are too long: whether to drop items, in which steps, and from which length on.

    `step` is a share of the context. With a step the prompt begins at the same item for many turns of a conversation, so that the
    engine finds it in the prefix cache; with 0 the fewest items are dropped. `most_droppable` limits the tokens of the items that
    can be dropped, also where the prompt fits.
    """

    drops: bool = False
    step: float = 0.0
    most_droppable: int | None = None

    @classmethod
    def of(cls, truncation: str | Mapping[str, Any]) -> TruncationPolicy:
        """Return the policy of the field `truncation` of a request: `auto`, `disabled` or an object `retention_ratio`."""
        if isinstance(truncation, str):
            return cls(truncation == "auto", settings.RESPONSES_TRUNCATION_STEP)
        limits = truncation.get("token_limits") or {}
        return cls(True, 1 - truncation["retention_ratio"], limits.get("post_instructions"))


FEWEST: Final = TruncationPolicy(drops=True)


class Truncation:
    """Search for the smallest number of the oldest units whose removal leaves at most `most` tokens.

    If the prompt is longer without all units, it may have as many tokens as leave one for the answer.

    The number is on a grid of the policy: the estimated tokens of the removed units reach the next multiple of the step. The grid
    depends on the units from the oldest on, so it is the same for each longer turn of a conversation.

    A prompt that is too long is rendered up to `most` tokens only: a step costs the remaining items, not all. Each guess uses the
    sizes of the units and the lengths of the earlier prompts.
    """

    def __init__(
        self,
        prompts: PromptRenderer,
        turn: Turn,
        most: int,
        policy: TruncationPolicy = FEWEST,
        skipped: SkippedItems | None = None,
    ) -> None:
        self._prompts, self._most, self._policy = prompts, most, policy
        self._limit = prompts.engine.max_model_len - 1
        # Tokens of items that the steps share.
        self._turn = replace(turn, token_cache=turn.token_cache or TokenCache())
        self._units = droppable(turn.items)
        self._sizes = [0, *accumulate(sum(size(turn.items[place]) for place in unit) for unit in self._units)]
        # Units before the first item that is surely read; the sizes behind these count the skipped items, too.
        self._early = 0 if skipped is None else count_early(turn.items, self._units, skipped)
        if skipped is not None:
            self._sizes[self._early :] = [total + skipped.size for total in self._sizes[self._early :]]
        self._skipped = skipped
        # With so many units fewer the prompt was too long.
        self._too_few: int | None = None
        # Tokens per estimated token.
        self._rate = 1.0

    async def search(self) -> tuple[Turn, RenderedPrompt]:
        """Return the shortened turn and the prompt. Raises TooLong, and the errors of `PromptRenderer`."""
        last = len(self._units)
        turn, prompt = await self._without(last, self._limit)
        if not prompt.fits(self._most):
            return turn, prompt
        if self._policy.most_droppable is not None:
            self._most = min(self._most, prompt.length + self._policy.most_droppable)
        # Places in `counts`: without `counts[enough]` units the prompt fits, without `counts[too_few]` it does not.
        counts = [count for count in self._grid() if self._skipped is None or count > self._early]
        if not counts:
            raise NeedsAllItems
        least, too_few, enough, tries = prompt.length, -1, len(counts) - 1, 0
        while enough - too_few > 1:
            tries += 1
            place = self._guess(counts, too_few, enough, prompt.length) if tries <= GUESSES else (too_few + enough) // 2
            fitting = await self._fitting(counts[place])
            if fitting is None:
                too_few = place
                self._learn(last, counts[place], self._most - least, is_lower_bound=True)
            else:
                (turn, prompt), enough = fitting, place
                self._learn(last, counts[place], prompt.length - least)
        if too_few < 0 and self._skipped is not None and await self._fitting(self._early) is not None:
            raise NeedsAllItems
        self._too_few = counts[too_few] if too_few >= 0 else None
        self._learn(last, counts[enough], prompt.length - least)
        return turn, prompt

    def skippable(self, before: ConversationContext) -> SkippedItems | None:
        """Return the items of `before` that the next turn need not read, after a search; None without."""
        if self._too_few is None:
            return None
        # Items of more than the whole context are read, so that the prompt of these is too long for any length of the answer.
        most = self._sizes[self._too_few] - int(self._limit * MARGIN / self._rate)
        end = bisect_right(self._sizes, most) - 1
        return skip_units(before, self._turn.items, self._units[self._early : end + 1], self._sizes[self._early : end + 1])

    def _grid(self) -> list[int]:
        """Return the numbers of units that may be removed, smallest first; 0 only where a prompt that fits may be too long."""
        last, step = len(self._units), int(self._limit * self._policy.step)
        begin = [] if self._policy.most_droppable is None else [0]
        if step < 1:
            return [*begin, *range(1, last + 1)] or [0]
        multiples = range(step, self._sizes[-1], step)
        return sorted({*begin, *(bisect_left(self._sizes, multiple) for multiple in multiples), last})

    async def _fitting(self, count: int) -> tuple[Turn, RenderedPrompt] | None:
        """Return the turn without the oldest `count` units, and the prompt; None if the prompt is too long."""
        try:
            turn, prompt = await self._without(count, self._most)
        except TooLong:
            return None
        return (turn, prompt) if prompt.fits(self._most) else None

    def _guess(self, counts: Sequence[int], too_few: int, enough: int, length: int) -> int:
        """Guess the next place in `counts` between both; without `counts[enough]` units the prompt has `length` tokens."""
        free = (self._most - length) / self._rate
        target = self._sizes[counts[enough]] - free
        place = bisect_left(counts, target, too_few + 1, enough, key=self._sizes.__getitem__)
        return min(place, enough - 1)

    def _learn(self, last: int, count: int, tokens: int, *, is_lower_bound: bool = False) -> None:
        """Compare the tokens of the units behind `count` with the estimated sizes."""
        estimated = self._sizes[last] - self._sizes[count]
        if estimated > 0 and tokens > 0:
            rate = tokens / estimated
            self._rate = max(rate * 1.02, self._rate * 1.2) if is_lower_bound else rate

    async def _without(self, count: int, most: int) -> tuple[Turn, RenderedPrompt]:
        gone = {place for unit in self._units[:count] for place in unit}
        items = [item for place, item in enumerate(self._turn.items) if place not in gone]
        shorter = replace(self._turn, items=items)
        return shorter, await self._prompts.of(shorter, most)


def size(item: Mapping[str, Any]) -> int:
    """Estimate the number of tokens of an item."""
    return FRAME_TOKENS + long_work.text_size(item) // BYTES_OF_A_TOKEN


def droppable(items: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Return the indexes of droppable items, in units that are dropped together, oldest first.

    A unit is a call with its outputs, or reasoning with the item behind it. System and developer messages, the last user message
    and the last item stay.
    """
    units: dict[str, list[int]] = {}
    thought: list[int] = []
    for place, item in enumerate(items):
        if item["type"] == "reasoning":
            thought.append(place)
            continue
        # Several calls behind one reasoning item are separate units: the reasoning belongs to the first.
        units.setdefault(f"call {item['call_id']}" if "call_id" in item else f"item {place}", []).extend([*thought, place])
        thought = []
    users = [place for place, item in enumerate(items) if _role(item) == "user"]
    staying = {len(items) - 1, *users[-1:], *(place for place, item in enumerate(items) if _role(item) in LASTING_ROLES)}
    return [unit for unit in units.values() if staying.isdisjoint(unit)]


def _role(item: Mapping[str, Any]) -> str | None:
    return item.get("role") if item["type"] == "message" else None
