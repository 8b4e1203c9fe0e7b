"""List of chat threads, each with the newest response and the first user text as title."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import reduce
from operator import or_

import orjson
from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Concat, Left, Right, StrIndex
from django.db.models.lookups import Exact
from django.utils import timezone
from django.utils.dateformat import format as date_format

from responses_app.models import BRANCH, ChatThread, Direction, Item, Response
from responses_app.utils.user_model import User
from responses_app.web.responses import search as responses_search

# Threads per page.
PAGE_SIZE = 30
MAX_PINNED = 20
PINNED = "Pinned"
# A title is searched in the first items of a thread and the first characters of each item.
TITLE_ITEMS = 6
TITLE_ITEM_CHARS = 1500
# The beginning of an item and, where a picture fills it, the end: the text stands behind the pictures.
BEGINNING = Left("body", TITLE_ITEM_CHARS)
PICTURE_AT = StrIndex(BEGINNING, Value('"image_url":"data:'))
OUTER_TEXT = Concat(BEGINNING, Case(When(Exact(PICTURE_AT, 0), then=Value("")), default=Right("body", TITLE_ITEM_CHARS)))
MAX_TITLE_CHARS = 80
# A search returns at most this number of responses, the newest ones.
MAX_SEARCH_RESULTS = 1000
# The text of a message in JSON, which may be truncated.
TEXT = re.compile(r'"(?:text|content)": ?"((?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)')
ROLE = re.compile(r'"role": ?"(\w+)"')


@dataclass(frozen=True, slots=True)
class ThreadQuery:
    """Threads of the list in `project`: those of `user`, or with `everything` those of all keys and people; `words` searches.

    `before` is the id of the last response of the page before.
    """

    project: str
    user: User
    everything: bool = False
    words: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """Thread in the list: id and time of the newest response, the title, and the heading of the group."""

    uid: str
    created_at: datetime
    title: str
    group: str


@dataclass(frozen=True, slots=True)
class ThreadPage:
    """Page of threads, newest first. `next` is the value of `before` for the next page, empty on the last page."""

    entries: Sequence[ThreadSummary]
    next: str


def page(visible: QuerySet[Response], query: ThreadQuery) -> ThreadPage:
    """Return a page of threads: first those that the person has pinned. Pages start by key, not by offset."""
    rows, later = _of_person(visible, query), _of_person(Response.objects.all(), query)
    if query.words:
        found = _search(rows, query.project, query.words)
        rows = rows.filter(thread__in=Response.objects.filter(pk__in=found).values("thread"))
    newest_rows = rows.filter(~Exists(later.filter(thread=OuterRef("thread"), pk__gt=OuterRef("pk"))))
    pinned = [] if query.words else _pinned(newest_rows, query)
    pinned_keys = {thread_key(row) for row in pinned}
    if query.before:
        pinned, newest_rows = [], newest_rows.filter(pk__lt=_key_of(query))
    newest = list(_summary_columns(newest_rows).order_by("-pk")[: PAGE_SIZE + 1])
    listed = [row for row in _dedupe(newest[:PAGE_SIZE]) if thread_key(row) not in pinned_keys]
    title_of, chosen, today = titles([*pinned, *listed]), chosen_titles([*pinned, *listed], query.user), timezone.localdate()
    entries = [
        ThreadSummary(
            row.uid,
            row.created_at,
            chosen.get(thread_key(row)) or title_of[row.pk],
            PINNED if row in pinned else date_group(timezone.localdate(row.created_at), today),
        )
        for row in (*pinned, *listed)
    ]
    return ThreadPage(entries, newest[PAGE_SIZE - 1].uid if len(newest) > PAGE_SIZE else "")


def date_group(day: date, today: date) -> str:
    """Return the heading for a day: `Today`, `Yesterday`, `Previous 7 days`, or the month, with the year unless it is this year's."""
    age = (today - day).days
    if age <= 1:
        return "Yesterday" if age == 1 else "Today"
    if age <= 7:
        return "Previous 7 days"
    return date_format(day, "F" if day.year == today.year else "F Y")


def thread_key(row: Response) -> str:
    """Return the id of the first response of the thread, of the original thread if `row` belongs to a branch of the first message."""
    return row.metadata.get(BRANCH) or row.thread


def responses_of_thread(row: Response) -> QuerySet[Response]:
    """Return all responses of the thread of `row`, with all branches."""
    key = thread_key(row)
    return Response.objects.filter(_is_thread(key), project=row.project)


def chosen_titles(rows: Iterable[Response], user: User) -> dict[str, str]:
    """Return the titles that `user` has given to the threads of `rows`, by the key of the thread."""
    chosen = ChatThread.objects.filter(user=user, thread__in=[thread_key(row) for row in rows]).exclude(title="")
    return dict(chosen.values_list("thread", "title"))


def title_for(row: Response, user: User) -> str:
    """Return the title of a thread as `user` sees it."""
    return chosen_titles([row], user).get(thread_key(row)) or titles([row])[row.pk]


def _of_person(rows: QuerySet[Response], query: ThreadQuery) -> QuerySet[Response]:
    # Reruns are no turns of a chat.
    rows = rows.filter(project=query.project, stored=True, rerun_of="")
    return rows if query.everything else rows.filter(user=query.user)


def _pinned(newest_rows: QuerySet[Response], query: ThreadQuery) -> list[Response]:
    """Return the newest response of each pinned thread, the last pinned first."""
    pins = ChatThread.objects.filter(user=query.user, project=query.project, pinned_at__isnull=False).order_by("-pinned_at")
    keys = list(pins.values_list("thread", flat=True)[:MAX_PINNED])
    if not keys:
        return []
    of_pins = reduce(or_, (_is_thread(key) for key in keys))
    rows = _dedupe(_summary_columns(newest_rows.filter(of_pins)).order_by("-pk"))
    return sorted(rows, key=lambda row: keys.index(thread_key(row)))


def _is_thread(key: str) -> Q:
    # The condition `~Q(metadata={})` lets Postgres use the partial index on the metadata.
    return Q(thread=key) | (~Q(metadata={}) & Q(metadata__contains={BRANCH: key}))


def _key_of(query: ThreadQuery) -> QuerySet[Response, int]:
    return Response.objects.filter(uid=query.before, project=query.project).values_list("pk", flat=True)


def titles(rows: Sequence[Response]) -> dict[int, str]:
    """Return the titles of the threads of `rows`, by primary key of the response."""
    head = dict(Response.objects.filter(pk__in=[row.pk for row in rows]).values_list("pk", f"history__0_{TITLE_ITEMS}"))
    bodies = _bodies(pk for keys in head.values() for pk in keys)
    bodies_by_response = defaultdict(list)
    inputs = Item.objects.filter(response__in=[row.pk for row in rows], direction=Direction.INPUT).order_by("pk")
    for pk, body in inputs.values_list("response_id", OUTER_TEXT):
        bodies_by_response[pk].append(body)
    return {pk: _title([*(bodies[key] for key in keys if key in bodies), *bodies_by_response[pk]]) for pk, keys in head.items()}


def _summary_columns(rows: QuerySet[Response]) -> QuerySet[Response]:
    return rows.only("uid", "thread", "created_at", "metadata")


def _bodies(keys: Iterable[int]) -> dict[int, str]:
    return dict(Item.objects.filter(pk__in=set(keys)).values_list("pk", OUTER_TEXT))


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
        newest.setdefault(thread_key(row), row)
    return list(newest.values())


def _search(rows: QuerySet[Response], project: str, words: str) -> list[int]:
    """Return the keys of the newest responses with `words` in the input or the output."""
    newest = list(rows.order_by("-pk").values_list("pk", flat=True)[: responses_search.RECENT_WINDOW])
    keys = set(responses_search.search_recent(words, newest))
    # The index has the items of all people in the project. Few rows have been searched whole.
    if len(newest) == responses_search.RECENT_WINDOW and len(keys) < MAX_SEARCH_RESULTS:
        keys.update(responses_search.search_indexed(words, [project]) or ())
    return sorted(keys, reverse=True)[:MAX_SEARCH_RESULTS]
