"""Prompt records of stored responses, and the earlier response with which a response is compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import orjson
from django.db.models import Q, QuerySet

from responses_app.models import Direction, Item, Response, StoredRequest
from responses_app.runs.cache_diagnostics.comparison import PromptRecord
from responses_app.runs.create_request import CreateRequest
from responses_app.store.log.rows.round_prompts import load_rounds, shared_length
from responses_app.store.log.rows.shared_prompts import read_prompt
from responses_app.store.log.token_log import decode_tokens

# Responses before another that are searched for the same `prompt_cache_key`.
SEARCHED: Final = 20
# Newest responses of a project of which those of the same key and model are searched for a similar prompt, and the number read.
SEARCHED_SIMILAR: Final = 500
MAX_SIMILAR: Final = 10


def load_record(row: Response, *, first: bool = False) -> PromptRecord | None:
    """Load the last prompt of a response that was sent, or the `first`, with the request. None if the prompt is not stored."""
    stored = StoredRequest.objects.filter(response_id=row.pk).values_list("create_request", flat=True).first()
    sent = [one for one in load_rounds(row.pk) if one.input_tokens != 0]
    if stored is None or not sent:
        return None
    try:
        request = CreateRequest.load(stored, ())
    except (KeyError, TypeError):  # written by an older version
        return None
    items = Item.objects.filter(Q(pk__in=row.history) | Q(response_id=row.pk)).order_by("pk")
    bodies = {pk: (owner == row.pk and way == Direction.OUTPUT, orjson.loads(body)) for pk, owner, way, body in _columns(items)}
    keys = dict.fromkeys([pk for pk in row.history if pk in bodies] + list(bodies))
    return PromptRecord(
        model=row.model,
        request=request,
        items=[bodies[pk][1] for pk in keys if not bodies[pk][0]],
        prompt=sent[0 if first else -1].prompt,
        day=row.created_at.date(),
        answer=[bodies[pk][1] for pk in keys if bodies[pk][0]],
        is_single_round=len(sent) == 1,
    )


def _columns(items: QuerySet[Item]) -> QuerySet[Item, tuple[int, int | None, str, str]]:
    return items.values_list("pk", "response_id", "direction", "body")


def find_earlier(row: Response, visible: QuerySet[Response]) -> Response | None:
    """Return the response before `row` in its chain or conversation, or the last one with the same `prompt_cache_key`."""
    same_project = visible.filter(project=row.project)
    if row.previous_uid:
        return same_project.filter(uid=row.previous_uid).first()
    before = same_project.filter(pk__lt=row.pk).order_by("-pk")
    if row.conversation_id is not None:
        return before.filter(conversation_id=row.conversation_id).first()
    key = _cache_key(row.pk)
    if not key:
        return None
    return next((one for one in before.filter(key_id=row.key_id)[:SEARCHED] if _cache_key(one.pk) == key), None)


def find_similar(row: Response, visible: QuerySet[Response]) -> Response | None:
    """Return of the responses before `row` with the same key, user and model the one whose prompt shares most tokens, if any does."""
    prompt = _first_prompt(row.pk)
    newest = visible.filter(project=row.project, pk__lt=row.pk).order_by("-pk").values("pk")[:SEARCHED_SIMILAR]
    same = visible.filter(pk__in=newest, key_id=row.key_id, user_id=row.user_id, model=row.model).order_by("-pk")
    shared = [(shared_length(_first_prompt(one.pk), prompt), one) for one in same[:MAX_SIMILAR]]
    longest, response = max(shared, key=lambda pair: pair[0], default=(0, None))
    return response if longest else None


def _first_prompt(pk: int) -> Sequence[int]:
    stored = read_prompt(pk)
    return decode_tokens(stored) if stored else ()


def _cache_key(pk: int) -> str | None:
    stored = StoredRequest.objects.filter(response_id=pk).values_list("create_request", flat=True).first()
    return orjson.loads(stored).get("cache_key") if stored else None
