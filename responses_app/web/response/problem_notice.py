"""Notice of the output problems of a response: messages, items and texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from responses_app.models import Response
from responses_app.web.render.sanitize import visible
from responses_app.web.responses.failures import last_snapshots

MAX_TEXT_CHARS: Final = 400


@dataclass(frozen=True, slots=True)
class ProblemNotice:
    """Output problem. `item_id` is empty for a problem without an item. Invisible characters in the text are shown by name."""

    type: str
    message: str
    item_id: str
    text: str


def problem_notices(snapshot: Mapping[str, Any]) -> list[ProblemNotice]:
    """Return the notices of `output_problems` in a snapshot, which is empty for a running response."""
    return [
        ProblemNotice(
            str(problem["type"]),
            visible(str(problem["message"])),
            str(problem.get("item_id") or ""),
            visible(str(problem.get("text") or "")[:MAX_TEXT_CHARS]),
        )
        for problem in snapshot.get("output_problems", ())
    ]


def problems_of(row: Response) -> list[ProblemNotice]:
    """Return the notices of a stored response, none while it is running."""
    return problem_notices(last_snapshots([row.pk]).get(row.pk, {}))
