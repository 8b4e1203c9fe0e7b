"""Control items of the input: configuration updates and the compaction trigger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from responses_app.schemas import text_format
from responses_app.validation.base import Effort, StrictModel
from responses_app.validation.errors import Loc, invalid

TRIGGER = "compaction_trigger"


class EffortUpdate(StrictModel):
    """`reasoning` of a configuration update."""

    effort: Effort | None = None


class FormatUpdate(StrictModel):
    """`text` of a configuration update."""

    format: text_format.OutputFormat


class ConfigurationUpdate(StrictModel):
    """Settings that replace the settings of the request from this item on."""

    type: Literal["configuration_update"]
    id: str | None = None
    reasoning: EffortUpdate | None = None
    text: FormatUpdate | None = None


class CompactionTrigger(StrictModel):
    """Request for a compaction of all earlier items; the last item of the input."""

    type: Literal["compaction_trigger"]
    id: str | None = None


def check_trigger_last(items: Sequence[Mapping[str, Any]], loc: Loc) -> None:
    """Require a compaction trigger to be the last input item. Raises InvalidRequest."""
    for index, item in enumerate(items):
        if item["type"] == TRIGGER and (loc != ("input",) or index + 1 < len(items)):
            raise invalid((*loc, index), f"'{TRIGGER}' must be the final input item.")
