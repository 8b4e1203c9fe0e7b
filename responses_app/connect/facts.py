"""Facts about a served model that the configuration of a client needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Longest output in tokens that a client is offered, as a share of the context window.
OUTPUT_SHARE = 4


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Facts about a model. `efforts` are the values of `reasoning.effort` in ascending order; empty without reasoning."""

    name: str
    context_window: int
    efforts: Sequence[str] = ()
    supports_images: bool = False

    @classmethod
    def from_json(cls, model: Mapping[str, Any]) -> ModelFacts:
        """Read an object of `GET /v1/models`."""
        return cls(
            str(model["id"]),
            int(model.get("context_window") or 0),
            tuple(model.get("reasoning_efforts") or ()),
            "image" in (model.get("input_modalities") or ()),
        )

    def as_json(self) -> dict[str, Any]:
        """Return the keys that `GET /v1/models` adds to a model."""
        return {
            "context_window": self.context_window or None,
            "reasoning_efforts": list(self.efforts),
            "input_modalities": self.modalities,
        }

    @property
    def modalities(self) -> list[str]:
        """Return the types of input."""
        return ["text", "image"] if self.supports_images else ["text"]

    @property
    def default_effort(self) -> str | None:
        """Return the effort of a request that names none."""
        if not self.efforts:
            return None
        return "medium" if "medium" in self.efforts else self.efforts[-1]

    @property
    def max_output(self) -> int:
        """Return the output in tokens that a client may plan for, so that the prompt has most of the context window."""
        return max(1, self.context_window // OUTPUT_SHARE)
