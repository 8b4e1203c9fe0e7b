"""`prompt_cache_diagnostics` of a response, in the form of the API."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from asgiref.sync import sync_to_async

from responses_app.models import Response
from responses_app.runs.cache_diagnostics.comparison import PrefixComparison, PromptRecord, compare
from responses_app.runs.cache_diagnostics.stored import load_record
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.execute.run import DiagnosticsHook
from responses_app.runs.prepare.planner import PreparedRequest

UNAVAILABLE = {"type": "unavailable"}
NOT_FOUND = {"type": "comparison_response_not_found"}


def make_diagnostics_hook(create_request: CreateRequest, prepared: PreparedRequest) -> DiagnosticsHook | None:
    """Return the function that makes the object from the cached tokens of the first round; None unless the request asks for it.

    The cached tokens are None for a response of several rounds.
    """
    uid = create_request.comparison_response_id
    if uid is None:
        return None

    def make(cached: int | None) -> Awaitable[dict[str, Any]]:
        return sync_to_async(_diagnose)(create_request, prepared, uid, cached)

    return make


def _diagnose(create_request: CreateRequest, prepared: PreparedRequest, uid: str, cached: int | None) -> dict[str, Any]:
    context = prepared.context
    row = Response.objects.filter(project=create_request.project, uid=uid.replace("\0", ""), stored=True).first()
    if row is None:
        return NOT_FOUND
    earlier = load_record(row)
    # With openings the first prompt was not sent.
    if earlier is None or context.openings:
        return UNAVAILABLE
    later = PromptRecord(
        model=context.served.name,
        request=create_request,
        items=[*context.before.items, *context.input_items],
        prompt=prepared.request.prompt,
        day=context.today,
    )
    return to_wire(compare(earlier, later, cached, context.dialect.token_text), cached)


def to_wire(comparison: PrefixComparison, cached: int | None) -> dict[str, Any]:
    """Return the object of the API. An equal prefix that the engine has not cached has no reason in the API: `unavailable`."""
    if comparison.missed == 0:
        return UNAVAILABLE if cached == 0 else {"type": "cache_hit"}
    return {
        "type": "cache_miss",
        "reason": comparison.changes[0].reason,
        "cache_missed_tokens": comparison.missed,
        "comparison_reusable_tokens": comparison.reusable,
    }
