"""The list of threads: the newest response of each, under the first words that a person said in it."""

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

PAGE = 30
# Items of so many places at the beginning are looked at, and so much of each: it may carry a picture.
FIRST_ITEMS = 6
BEGINNING = 1500
LONGEST = 80
# Of the responses that a search finds the newest; words that are in more of them find the newest threads.
FOUND = 1000
# The key under which a thread that was begun by editing or regenerating a first message names the one that it was.
BRANCH = "branch_of"
# A JSON string, also one that is cut off, that says what a message says.
TEXT = re.compile(r'"(?:text|content)": ?"((?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)')
ROLE = re.compile(r'"role": ?"(\w+)"')


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """One thread: its newest response, when that was made, and what the thread is called."""

    uid: str
    at: datetime
    title: str


@dataclass(frozen=True, slots=True)
class ThreadPage:
    """Threads, those that were spoken in last first; `next` is the id that an older page stands behind, empty if there is none."""

    entries: Sequence[ThreadSummary]
    next: str


def page(seen: QuerySet[Response], project: str, words: str = "", before: str = "") -> ThreadPage:
    """Threads of the project; with `words`, those in which a message says them. By key, so that every page is as fast as the first."""
    rows = seen.filter(project=project, stored=True)
    later = Response.objects.filter(thread=OuterRef("thread"), pk__gt=OuterRef("pk"), stored=True)
    if words:
        rows = rows.filter(thread__in=Response.objects.filter(pk__in=_saying(rows, project, words)).values("thread"))
    if before:
        rows = rows.filter(pk__lt=Response.objects.filter(uid=before, project=project).values("pk"))
    found = list(_brief(rows.filter(~Exists(later))).order_by("-pk")[: PAGE + 1])
    named = titles(found[:PAGE])
    entries = [ThreadSummary(row.uid, row.created_at, named[row.pk]) for row in _dedupe(found[:PAGE])]
    return ThreadPage(entries, found[PAGE - 1].uid if len(found) > PAGE else "")


def titles(rows: Sequence[Response]) -> dict[int, str]:
    """What the threads of these responses are called, by primary key of the response."""
    head = dict(Response.objects.filter(pk__in=[row.pk for row in rows]).values_list("pk", f"history__0_{FIRST_ITEMS}"))
    told = _texts(pk for keys in head.values() for pk in keys)
    own = defaultdict(list)
    mine = Item.objects.filter(response__in=[row.pk for row in rows], direction=Direction.INPUT).order_by("pk")
    for pk, body in mine.values_list("response_id", Left("body", BEGINNING)):
        own[pk].append(body)
    return {pk: _title([*(told[key] for key in keys if key in told), *own[pk]]) for pk, keys in head.items()}


def _brief(rows: QuerySet[Response]) -> QuerySet[Response]:
    return rows.only("uid", "thread", "created_at", "metadata")


def _texts(keys: Iterable[int]) -> dict[int, str]:
    return dict(Item.objects.filter(pk__in=set(keys)).values_list("pk", Left("body", BEGINNING)))


def _title(bodies: Iterable[str]) -> str:
    for body in bodies:
        role, text = ROLE.search(body), TEXT.search(body)
        if text and (role is None or role[1] == "user"):
            said = " ".join(orjson.loads(f'"{text[1]}"').split()) if _whole(text[1]) else ""
            if said:
                return said if len(said) <= LONGEST else f"{said[:LONGEST]}…"
    return "Untitled"


def _whole(text: str) -> bool:
    """Whether a piece of JSON can be read: one that is cut between the halves of a surrogate pair cannot."""
    try:
        orjson.loads(f'"{text}"')
    except orjson.JSONDecodeError:
        return False
    return True


def _dedupe(rows: Iterable[Response]) -> list[Response]:
    """Of threads that are branches of one first message, the one that was spoken in last."""
    known: dict[str, Response] = {}
    for row in rows:
        known.setdefault(row.metadata.get(BRANCH) or row.thread, row)
    return list(known.values())


def _saying(rows: QuerySet[Response], project: str, words: str) -> list[int]:
    """The newest of these responses that say the words, or have been told them."""
    newest = rows.order_by("-pk").values_list("pk", flat=True)[: responses_search.NEAR]
    found = set(responses_search.search_recent(words, list(newest)))
    if len(found) < FOUND:
        found.update(responses_search.search_indexed(words, [project]) or ())
    return sorted(found, reverse=True)[:FOUND]
