"""Models in the form of Anthropic's API."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from responses_app.errors import NotFound
from responses_app.runs.models import ServedModel
from responses_app.validation.errors import invalid, shorten


def model_list(
    models: Mapping[str, ServedModel], limit: int, *, after: str | None = None, before: str | None = None
) -> dict[str, Any]:
    """Return a page of at most `limit` models, after or before the model of this name. Raises InvalidRequest, NotFound.

    `has_more` is about further models in the direction of the page.
    """
    if after is not None and before is not None:
        raise invalid(("before_id",), "it cannot be used together with 'after_id'.")
    names, cursor = list(models), before if after is None else after
    if cursor is not None and cursor not in models:
        raise NotFound(f"No model found with id '{shorten(cursor)}'.", param="before_id" if after is None else "after_id")
    if before is not None:
        names = names[: names.index(before)]
        shown = names[-limit:]
    else:
        names = names if after is None else names[names.index(after) + 1 :]
        shown = names[:limit]
    ends = {"first_id": shown[0], "last_id": shown[-1]} if shown else {"first_id": None, "last_id": None}
    return {"data": [model_info(name, models[name]) for name in shown], "has_more": len(names) > len(shown), **ends}


def model_info(name: str, served: ServedModel) -> dict[str, Any]:
    """Return a model; the name is also the name to show."""
    return {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": datetime.fromtimestamp(served.created, UTC).isoformat().replace("+00:00", "Z"),
        "lifecycle": "active",
        "max_input_tokens": served.context_window,
    }
