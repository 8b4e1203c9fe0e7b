"""Differences of two responses by layer, and the comparison of their prompts for the prefix cache."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from responses_app.models import Response
from responses_app.runs.cache_diagnostics.comparison import compare
from responses_app.runs.cache_diagnostics.stored import load_record
from responses_app.web.rerun.differences import differences
from responses_app.web.rerun.turns import load_turn

FIGURES: Final = (
    "status",
    "model",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "reasoning_tokens",
    "time_to_first_token_ms",
)


def compare_responses(first: Response, second: Response) -> dict[str, Any]:
    """Return the figures of both responses, their differences, and where the second prompt leaves the first."""
    layers = differences(load_turn(first), load_turn(second))
    return {
        "figures": {name: [getattr(first, name), getattr(second, name)] for name in FIGURES},
        "differences": asdict(layers),
        "prefix_cache": _prefix(first, second),
    }


def _prefix(first: Response, second: Response) -> dict[str, Any] | None:
    """Return the shared prefix in tokens and the changes. None if a prompt is not stored."""
    earlier, later = load_record(first), load_record(second, first=True)
    return None if earlier is None or later is None else asdict(compare(earlier, later, second.cached_tokens))
