"""Tool result: the base class of results of server tools, with the part that only the model reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from responses_app.protocol.items.base import Delta

# Key of a `ModelOutput` in an item of a prompt. No item in an event, in an answer or in the database has this key.
MODEL_OUTPUT: Final = "model_output"
# Key of a note of the server behind an output, in an item of a prompt alone.
OUTPUT_NOTE: Final = "output_note"


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """Output of a server tool as the model reads it: text, and pictures as data URLs in base64.

    Without `text` the model reads the item.
    """

    text: str | None = None
    images: Sequence[str] = ()


@dataclass(slots=True, kw_only=True)
class ToolResult(Delta):
    """Result of a server tool. The fields `model_text` and `model_images` are for the model alone and in no event.

    Both are saved in the token log and in the table `ToolOutput`. `model_images` are data URLs in base64.
    """

    model_text: str | None = None
    model_images: Sequence[str] = ()

    @property
    def model_output(self) -> ModelOutput | None:
        """Output for the model; None if the model reads the item."""
        if self.model_text is None and not self.model_images:
            return None
        return ModelOutput(self.model_text, tuple(self.model_images))
