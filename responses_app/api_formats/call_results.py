"""Check that each call of a conversation has a result, for formats whose conversations are in the request as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from responses_app.errors import InvalidRequest
from responses_app.protocol.items.registry import FAMILIES


def check_results(items: Sequence[Mapping[str, Any]], paths: Sequence[str], problem: str) -> None:
    """Check that each call among the input items has a result. Raises InvalidRequest for the first call without a result.

    `paths` has the path of each item in the request, `problem` is the sentence before the ids of the calls without results.
    """
    answered = {item["call_id"] for item in items if item["type"] in FAMILIES.calls_by_output}
    unanswered = [
        (path, item["call_id"])
        for item, path in zip(items, paths, strict=True)
        if item["type"] in FAMILIES.calls_by_output.values() and item["call_id"] not in answered
    ]
    if unanswered:
        path, ids = unanswered[0][0], ", ".join(call_id for _, call_id in unanswered)
        raise InvalidRequest(f"Invalid '{path}': {problem} {ids}.", param=path, code="invalid_value")
