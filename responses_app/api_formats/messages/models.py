"""Models in the form of Anthropic's API."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from responses_app.runs.models import ServedModel


def model_list(models: Mapping[str, ServedModel]) -> dict[str, Any]:
    """Return the list of models, in one page."""
    data = [model_info(name, served) for name, served in models.items()]
    ends = {"first_id": data[0]["id"], "last_id": data[-1]["id"]} if data else {"first_id": None, "last_id": None}
    return {"data": data, "has_more": False, **ends}


def model_info(name: str, served: ServedModel) -> dict[str, Any]:
    """Return a model; the name is also the name to show."""
    return {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": datetime.fromtimestamp(served.created, UTC).isoformat().replace("+00:00", "Z"),
        "lifecycle": "active",
        "max_input_tokens": served.engine.max_model_len,
    }
