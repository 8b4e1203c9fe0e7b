"""Choice of the pictures in outputs of server tools that a prompt shows to a model that sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from responses_app.images import decode, decode_pool
from responses_app.images.decode import InvalidImage
from responses_app.tools.outputs.output_limit import Picture, ShownPictures, pictures_of

# Limits of the pictures of all outputs in a prompt. The newest outputs come first. Further pictures stay notices in the text.
MAX_PICTURES: Final = 20
MAX_BYTES: Final = 64 * 1024 * 1024
MAX_PIXELS: Final = 50_000_000


@dataclass(slots=True)
class PromptPictures:
    """Pictures of a prompt: the shown pictures by item id, and the bytes by item id and URL."""

    shown: dict[str, ShownPictures] = field(default_factory=dict)
    images: dict[tuple[str, str], bytes] = field(default_factory=dict)


async def choose_pictures(project: str, items: Sequence[Mapping[str, Any]]) -> PromptPictures:
    """Return the pictures of outputs in `items` that decode and are within the limits. Raises DecoderBusy."""
    chosen, budget = PromptPictures(), _Budget()
    for item in reversed(items):
        urls: dict[int, str] = {}
        for position, picture in enumerate(pictures_of(item)):
            data = await budget.take(project, picture)
            if data is not None:
                # The key of the bytes: the data URL itself would be as long as the picture.
                urls[position] = f"tool-output:{position}"
                chosen.images[item["id"], urls[position]] = data
        if urls:
            chosen.shown[item["id"]] = urls
    return chosen


class _Budget:
    """Number, bytes and pixels of pictures that may still be taken."""

    def __init__(self) -> None:
        self._pictures, self._bytes, self._pixels = MAX_PICTURES, MAX_BYTES, MAX_PIXELS

    async def take(self, project: str, picture: Picture) -> bytes | None:
        """Return the bytes of `picture`; None if it does not fit or is no valid image. Raises DecoderBusy."""
        # Four characters of base64 are three bytes.
        if not self._pictures or len(picture.url) * 3 // 4 > self._bytes:
            return None
        try:
            data = decode.decode_data_url(picture.url)
            size = await decode_pool.check(project, data)
        except InvalidImage:
            return None
        if size.area > self._pixels:
            return None
        self._pictures, self._bytes, self._pixels = self._pictures - 1, self._bytes - len(data), self._pixels - size.area
        return data
