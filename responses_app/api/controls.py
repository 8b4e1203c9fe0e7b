"""Items that say how to go on, not what was said: other settings from here on, or a compaction of all before (§1.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from responses_app.api import formats
from responses_app.api.base import Effort, Strict
from responses_app.api.problems import Loc, path
from responses_app.errors import Invalid

TRIGGER = "compaction_trigger"


class EffortUpdate(Strict):
    """`reasoning` of a configuration update."""

    effort: Effort | None = None


class FormatUpdate(Strict):
    """`text` of a configuration update."""

    format: formats.Format


class ConfigurationUpdate(Strict):
    """What holds from here on in place of what the requests say."""

    type: Literal["configuration_update"]
    id: str | None = None
    reasoning: EffortUpdate | None = None
    text: FormatUpdate | None = None


class Trigger(Strict):
    """Behind everything else: asks for a compaction of it."""

    type: Literal["compaction_trigger"]
    id: str | None = None


def final(items: Sequence[Mapping[str, Any]], loc: Loc) -> None:
    """A trigger stands behind the whole input of a request, and is not kept. Raises Invalid."""
    for index, item in enumerate(items):
        if item["type"] == TRIGGER and (loc != ("input",) or index + 1 < len(items)):
            where = path((*loc, index))
            raise Invalid(f"Invalid '{where}': '{TRIGGER}' must be the final input item.", param=where, code="invalid_value")
