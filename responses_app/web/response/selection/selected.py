"""Selected item of a response: title, events and tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Q

from responses_app.models import Item, Response
from responses_app.store.log.event_index import EventHeader, event_headers
from responses_app.store.log.rows.round_prompts import load_rounds
from responses_app.web.render.item_titles import item_title
from responses_app.web.render.sanitize import visible
from responses_app.web.response.selection.prompt_rounds import sent_rounds
from responses_app.web.response.selection.prompt_span import PromptSpan, prompt_span
from responses_app.web.response.timelines.event_groups import COPIES, EventGroup, group
from responses_app.web.response.timelines.event_kinds import DELTA, GENERATION_KINDS, event_kind
from responses_app.web.response.timelines.item_spans import ItemSpan, item_spans, round_starts


def output_span(
    row: Response, span: ItemSpan, written: Sequence[ItemSpan], headers: Sequence[EventHeader], round_number: int
) -> PromptSpan | None:
    """Return the tokens of `span`, of the items `written` in the round, in order. None without the prompt or tokens of the item."""
    rounds = [counts for _, counts in sent_rounds(row, load_rounds(row.pk))]
    if round_number > len(rounds) or (start := rounds[round_number - 1].input_tokens) is None:
        return None
    exact = _counts_of_usage(row, written) if len(rounds) == 1 else None
    counts = exact or [_deltas(one, headers) for one in written]
    place = next(index for index, one in enumerate(written) if one.uid == span.uid)
    first = start + sum(counts[:place])
    if not counts[place]:
        return None
    return PromptSpan(round_number, first, first + counts[place] - 1, is_output=True, is_exact=exact is not None)


def _counts_of_usage(row: Response, written: Sequence[ItemSpan]) -> list[int] | None:
    """Return the tokens of each item as usage counts these. None if these belong to more items."""
    if row.output_tokens is None:
        return None
    reasoning = row.reasoning_tokens or 0
    match [str(one.item.get("type")) for one in written]:
        case ["reasoning"]:
            return [row.output_tokens]
        case ["reasoning", other] if other != "reasoning":
            return [reasoning, row.output_tokens - reasoning]
        case [_] if not reasoning:
            return [row.output_tokens]
    return None


def _deltas(span: ItemSpan, headers: Sequence[EventHeader]) -> int:
    """Return the number of deltas of an item that the model wrote, without copies."""
    return sum(
        header.type.endswith(DELTA) and header.type not in COPIES and event_kind(header.type) in GENERATION_KINDS
        for header in headers
        if span.first <= header.number <= span.last
    )


# Groups of events that the inspector shows.
MAX_GROUPS: Final = 16


@dataclass(frozen=True, slots=True)
class SelectedItem:
    """Item of a response. An item of the input has no events; `tokens` is the place in a prompt, if a prompt has the item."""

    uid: str
    title: str
    groups: Sequence[EventGroup] = ()
    tokens: PromptSpan | None = None

    @property
    def first(self) -> int:
        """Return the number of the first event."""
        return self.groups[0].first.number

    @property
    def last(self) -> int:
        """Return the number of the last event."""
        return self.groups[-1].last.number

    @property
    def shown_groups(self) -> Sequence[EventGroup]:
        """Return the groups of events that the inspector shows."""
        return self.groups[:MAX_GROUPS]


def selected_item(row: Response, uid: str) -> SelectedItem | None:
    """Return the item `uid` of the response or of its context; None without one."""
    if not uid:
        return None
    headers = event_headers(row.pk)
    spans = item_spans(row.pk, headers)
    span = next((one for one in spans if one.uid == uid), None)
    if span is not None:
        groups = group([header for header in headers if span.first <= header.number <= span.last])
        return SelectedItem(uid, title_of(span.item), groups, _tokens(row, span, spans, headers))
    stored = Item.objects.filter(Q(response=row) | Q(pk__in=row.history), uid=uid, project=row.project).first()
    if stored is None:
        return None
    item = json.loads(stored.body)
    return SelectedItem(uid, title_of(item), tokens=prompt_span(row, item, 0))


def title_of(item: Mapping[str, Any]) -> str:
    """Return the heading of an item, for a message the role."""
    if item.get("type", "message") == "message":
        return f"{visible(str(item.get('role') or 'assistant')).capitalize()} message"
    return item_title(item)


def _tokens(row: Response, span: ItemSpan, spans: Sequence[ItemSpan], headers: Sequence[EventHeader]) -> PromptSpan | None:
    """Return the tokens of an output item in the next prompt; if that has none, behind the prompt of its round."""
    place = _round_of(span, headers)
    in_prompt = prompt_span(row, span.item, place)
    if in_prompt is not None or span.item.get("type") == "mcp_list_tools":
        return in_prompt
    written = [one for one in spans if _round_of(one, headers) == place]
    return output_span(row, span, written, headers, place)


def _round_of(span: ItemSpan, headers: Sequence[EventHeader]) -> int:
    """Return the round of an item of the output, counted from 1."""
    ms = next(header.ms for header in headers if header.number == span.last)
    return sum(start < ms for start in round_starts(headers)) or 1
