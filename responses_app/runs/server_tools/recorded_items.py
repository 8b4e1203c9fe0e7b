"""Recorded items: calls of server tools with their results, stored for a response whose request is run again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from responses_app.errors import InvalidRequest
from responses_app.models import Direction, Item, Response
from responses_app.runs.ids import is_id
from responses_app.store.content import tool_outputs
from responses_app.tools.recorded.calls import CALL_TYPES

# An approved call is in a later response of the thread than its request.
MAX_RECORDED_ITEMS: Final = 500


async def check_original(project: str, uid: str | None) -> None:
    """Check that the original of a rerun is a response of the project. Raises InvalidRequest."""
    if uid is not None and not (is_id(uid) and await Response.objects.filter(project=project, uid=uid).aexists()):
        raise InvalidRequest(f"Response with id '{uid}' not found.", param="rerun.of", code="response_not_found")


async def load_recorded_items(project: str, uid: str) -> Sequence[Mapping[str, Any]]:
    """Load the calls of server tools of a response, and of later responses of the thread that are no reruns, with the results."""
    original = await Response.objects.filter(project=project, uid=uid).only("pk", "thread").afirst()
    if original is None:
        return []
    items = Item.objects.filter(response_id=original.pk) | Item.objects.filter(
        response__thread=original.thread, response__project=project, response__rerun_of="", response_id__gt=original.pk
    )
    calls = items.filter(direction=Direction.OUTPUT, type__in=CALL_TYPES).order_by("response_id", "pk")
    bodies = [body async for body in calls.values_list("body", flat=True)[:MAX_RECORDED_ITEMS]]
    return await tool_outputs.with_outputs(project, [orjson.loads(body) for body in bodies])
