"""Editors of a request: its instructions, input items, tools, output format and parameters as texts to edit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from responses_app.models import Item, Response
from responses_app.web.render.sanitize import hide_url_queries, visible
from responses_app.web.rerun.turns import Turn, load_step
from responses_app.web.responses.parameters import parameters

# Characters of an item; a longer item, as with an image, is sent by reference and cannot be edited.
MAX_EDITED_CHARS: Final = 8_000
MAX_EDITED_ITEMS: Final = 100
MAX_TITLE_CHARS: Final = 60
SAMPLING: Final = ("temperature", "top_p", "max_output_tokens")
# Fields that have editors of their own.
_EDITED: Final = frozenset({*SAMPLING, "instructions", "tools"})


@dataclass(frozen=True, slots=True)
class ItemEditor:
    """Input item in an editor. `text` is the only text of a message, None for other items; `json` is sent if nothing is changed."""

    uid: str
    title: str
    json: str
    text: str | None
    is_editable: bool = True

    @property
    def shown(self) -> str:
        """Text of the editor."""
        return self.json if self.text is None else self.text

    @property
    def stored(self) -> str | None:
        """JSON of the item without what the editor shows; None if the editor shows all of it."""
        if not self.is_editable:
            return self.json
        if self.text is None:
            return None
        item = json.loads(self.json)
        del item["content"][0]["text"]
        return json.dumps(item, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class RequestEditors:
    """Texts of the editors. `previous` is the previous response, None if the items hold the whole context.

    `earlier` items stand before `items`, without editors.
    """

    previous: str | None
    earlier: int
    items: Sequence[ItemEditor]
    instructions: str
    tools: str
    format: str
    effort: str
    sampling: Mapping[str, Any]
    others: str


def request_editors(row: Response) -> RequestEditors:
    """Return the editors of the request of `row`. Items of a conversation are part of the input: a rerun must not change it."""
    fields = request_fields(row)
    text, reasoning = dict(fields.get("text", {})), dict(fields.get("reasoning", {}))
    output_format, effort = text.pop("format", None), reasoning.pop("effort", None)
    others = {name: value for name, value in fields.items() if name not in _EDITED and name not in ("text", "reasoning")}
    others |= {name: value for name, value in (("text", text), ("reasoning", reasoning)) if value}
    previous, items = _context(row, load_step(row).input)
    earlier, shown = latest_editors(items)
    return RequestEditors(
        previous,
        earlier,
        shown,
        str(fields.get("instructions") or ""),
        _pretty(fields.get("tools")),
        _pretty(output_format),
        str(effort or ""),
        {name: fields.get(name) for name in SAMPLING},
        _pretty(others),
    )


def latest_editors(items: Sequence[Mapping[str, Any]], end: int | None = None) -> tuple[int, list[ItemEditor]]:
    """Return the number of items before the editors, and the editors of the latest items, of those before the place `end`."""
    items = items[:end]
    earlier = max(len(items) - MAX_EDITED_ITEMS, 0)
    titles = _titles(items)[earlier:]
    return earlier, [_item_editor(item, title) for item, title in zip(items[earlier:], titles, strict=True)]


def references(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return references to stored items."""
    return [{"type": "item_reference", "id": item["id"]} for item in items]


def request_fields(row: Response) -> dict[str, Any]:
    """Return the parameters of the request, with the queries of MCP servers' URLs hidden: a query may contain a credential."""
    return dict(json.loads(hide_url_queries(json.dumps(parameters(row), ensure_ascii=False))))


def column_changes(row: Response, base: Response) -> str:
    """Return as JSON what the request of `row` has other than the request of `base`, without model and input; empty if equal."""
    ours, theirs = request_fields(row), request_fields(base)
    changed = {name: ours.get(name) for name in {**theirs, **ours} if ours.get(name) != theirs.get(name)}
    return json.dumps(changed, ensure_ascii=False) if changed else ""


def context_until(row: Response, turn: Turn, uid: str) -> tuple[str | None, list[Mapping[str, Any]]] | None:
    """Return previous response and items of a request that continues behind the item `uid`; None for an unknown item.

    Behind an item of the earlier context the items hold the whole context. With an empty `uid` these are previous response and items
    of the request itself.
    """
    if not uid:
        return _context(row, turn.steps[0].input)
    own = [item for step in turn.steps for item in (*step.input, *step.output)]
    if (place := _place(own, uid)) is not None:
        return _context(row, own[: place + 1])
    earlier = _history(row)
    if (place := _place(earlier, uid)) is not None:
        return None, earlier[: place + 1]
    return None


def _context(row: Response, items: Sequence[Mapping[str, Any]]) -> tuple[str | None, list[Mapping[str, Any]]]:
    """Return previous response and items of a request with `items`, which for a conversation follow those of the conversation."""
    if row.conversation_id is not None:
        return None, [*_history(row), *items]
    return row.previous_uid, list(items)


def _place(items: Sequence[Mapping[str, Any]], uid: str) -> int | None:
    return next((place for place, item in enumerate(items) if item.get("id") == uid), None)


def _history(row: Response) -> list[Mapping[str, Any]]:
    bodies = dict(Item.objects.filter(pk__in=row.history).values_list("pk", "body"))
    return [json.loads(bodies[key]) for key in row.history if key in bodies]


def history_titles(row: Response) -> list[tuple[str, str]]:
    """Return id and title of the newest items of the context before the response."""
    keys = row.history[-MAX_EDITED_ITEMS:]
    bodies = dict(Item.objects.filter(pk__in=keys).values_list("pk", "body"))
    items = [json.loads(bodies[key]) for key in keys if key in bodies]
    return [(str(item["id"]), title) for item, title in zip(items, _titles(items), strict=True)]


def _item_editor(item: Mapping[str, Any], title: str) -> ItemEditor:
    body = json.dumps(item, ensure_ascii=False, indent=2)
    if len(body) > MAX_EDITED_CHARS:
        (reference,) = references([item])
        return ItemEditor(str(item["id"]), title, json.dumps(reference), None, is_editable=False)
    return ItemEditor(str(item.get("id") or ""), title, body, only_text(item))


def only_text(item: Mapping[str, Any]) -> str | None:
    """Return the text of a message with a single text; None for other items."""
    content = item.get("content")
    if item.get("type", "message") != "message" or not isinstance(content, list) or len(content) != 1:
        return None
    return content[0].get("text") if content[0].get("type") in ("input_text", "output_text") else None


def _titles(items: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the titles of `items`, equal ones with numbers, as the buttons of the items have names with the title."""
    counts: Counter[str] = Counter()
    titles = []
    for title in map(_title, items):
        counts[title] += 1
        titles.append(title if counts[title] == 1 else f"{title} ({counts[title]})")
    return titles


def _title(item: Mapping[str, Any]) -> str:
    kind = str(item.get("role") or item["type"]).replace("_", " ").capitalize()
    name = item.get("name") or item.get("server_label")
    text = only_text(item) or ""
    detail = str(name) if name else " ".join(text[: 4 * MAX_TITLE_CHARS].split())[:MAX_TITLE_CHARS]
    return visible(f"{kind}: {detail}" if detail else kind)


def _pretty(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) if value else ""
