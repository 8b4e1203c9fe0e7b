"""List of chat threads, each with the newest response and the first user text as title."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Left

from responses_app.models import Direction, Item, Response
from responses_app.web.responses import search as responses_search

# Threads per page.
PAGE_SIZE = 30
# A title is searched in the first items of a thread and the first characters of each item, which may contain an image.
TITLE_ITEMS = 6
TITLE_ITEM_CHARS = 1500
MAX_TITLE_CHARS = 80
# A search returns at most this number of responses, the newest ones.
MAX_SEARCH_RESULTS = 1000
# Metadata key of a thread that started by editing or regenerating a first message: the id of the original first response.
BRANCH = "branch_of"
# The text of a message in JSON, which may be truncated.
TEXT = re.compile(r'"(?:text|content)": ?"((?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)')
ROLE = re.compile(r'"role": ?"(\w+)"')


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """Thread in the list: id and time of the newest response, and the title."""

    uid: str
    created_at: datetime
    title: str


@dataclass(frozen=True, slots=True)
class ThreadPage:
    """Page of threads, newest first. `next` is the value of `before` for the next page, empty on the last page."""

    entries: Sequence[ThreadSummary]
    next: str


def page(visible: QuerySet[Response], project: str, words: str = "", before: str = "") -> ThreadPage:
    """Return a page of the project's threads, with `words` only matching threads. Pages start by key, not by offset."""
    # Reruns are no turns of a chat.
    rows = visible.filter(project=project, stored=True, rerun_of="")
    later = Response.objects.filter(thread=OuterRef("thread"), pk__gt=OuterRef("pk"), stored=True, rerun_of="")
    if words:
        rows = rows.filter(thread__in=Response.objects.filter(pk__in=_search(rows, project, words)).values("thread"))
    if before:
        rows = rows.filter(pk__lt=Response.objects.filter(uid=before, project=project).values("pk"))
    newest = list(_summary_columns(rows.filter(~Exists(later))).order_by("-pk")[: PAGE_SIZE + 1])
    title_of = titles(newest[:PAGE_SIZE])
    entries = [ThreadSummary(row.uid, row.created_at, title_of[row.pk]) for row in _dedupe(newest[:PAGE_SIZE])]
    return ThreadPage(entries, newest[PAGE_SIZE - 1].uid if len(newest) > PAGE_SIZE else "")


def titles(rows: Sequence[Response]) -> dict[int, str]:
    """Return the titles of the threads of `rows`, by primary key of the response."""
    head = dict(Response.objects.filter(pk__in=[row.pk for row in rows]).values_list("pk", f"history__0_{TITLE_ITEMS}"))
    bodies = _bodies(pk for keys in head.values() for pk in keys)
    bodies_by_response = defaultdict(list)
    inputs = Item.objects.filter(response__in=[row.pk for row in rows], direction=Direction.INPUT).order_by("pk")
    for pk, body in inputs.values_list("response_id", Left("body", TITLE_ITEM_CHARS)):
        bodies_by_response[pk].append(body)
    return {pk: _title([*(bodies[key] for key in keys if key in bodies), *bodies_by_response[pk]]) for pk, keys in head.items()}


def _summary_columns(rows: QuerySet[Response]) -> QuerySet[Response]:
    return rows.only("uid", "thread", "created_at", "metadata")


def _bodies(keys: Iterable[int]) -> dict[int, str]:
    return dict(Item.objects.filter(pk__in=set(keys)).values_list("pk", Left("body", TITLE_ITEM_CHARS)))


def _title(bodies: Iterable[str]) -> str:
    for body in bodies:
        role, text = ROLE.search(body), TEXT.search(body)
        if text and (role is None or role[1] == "user"):
            title = " ".join(orjson.loads(f'"{text[1]}"').split()) if _is_json_string(text[1]) else ""
            if title:
                return title if len(title) <= MAX_TITLE_CHARS else f"{title[:MAX_TITLE_CHARS]}…"
    return "Untitled"


def _is_json_string(text: str) -> bool:
    """Return True if `text` parses. Text truncated inside a surrogate pair does not."""
    try:
        orjson.loads(f'"{text}"')
    except orjson.JSONDecodeError:
        return False
    return True


def _dedupe(rows: Iterable[Response]) -> list[Response]:
    """Select only the newest branch of each first message."""
    newest: dict[str, Response] = {}
    for row in rows:
        newest.setdefault(row.metadata.get(BRANCH) or row.thread, row)
    return list(newest.values())


def _search(rows: QuerySet[Response], project: str, words: str) -> list[int]:
    """Return the keys of the newest responses with `words` in the input or the output."""
    newest = rows.order_by("-pk").values_list("pk", flat=True)[: responses_search.RECENT_WINDOW]
    keys = set(responses_search.search_recent(words, list(newest)))
    if len(keys) < MAX_SEARCH_RESULTS:
        keys.update(responses_search.search_indexed(words, [project]) or ())
    return sorted(keys, reverse=True)[:MAX_SEARCH_RESULTS]
