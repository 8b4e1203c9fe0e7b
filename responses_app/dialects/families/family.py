"""Row of the tables of model families."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

THINK: Final = ("<think>",)
ENABLE_THINKING: Final = "enable_thinking switches the reasoning."
ALWAYS_REASONS: Final = "The model always reasons."


@dataclass(frozen=True, slots=True)
class Family:
    """Row of the table. A parser of None means that the family has no such output.

    `markers` must all be in the chat template, or all among the added tokens; none of `without` may be there.
    `reasoning_markers`: the template must contain one of these for `reasoning_parser`; empty for families that always reason.
    `model_types` and `names` are regular expressions for the whole `model_type`, and for a part of the lower-case name.
    `template_only`: the markers are not evidence as added tokens, because other families have these tokens too.
    `files` of the checkpoint are evidence where nothing else is.
    """

    name: str
    tool_parser: str | None
    reasoning_parser: str | None = None
    markers: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    reasoning_markers: tuple[str, ...] = ()
    model_types: str = ""
    names: str = ""
    template_only: bool = False
    files: tuple[str, ...] = ()
    remark: str = ""
