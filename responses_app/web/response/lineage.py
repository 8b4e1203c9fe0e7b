"""The chain view of a response: the tree of responses that continue each other, or the others of its conversation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from responses_app.access.permissions import visible_responses
from responses_app.web.response.detail import get_response, render_page
from responses_app.web.responses.rows import ResponseRow, rows

# Of a thread or a conversation, the newest.
MOST: Final = 200
# Deeper ones are not moved further to the right.
DEEPEST: Final = 12


@dataclass(frozen=True, slots=True)
class LineageBranch:
    """A response in the tree. It forks off where the one it continues has been continued before."""

    line: ResponseRow
    depth: int
    fork: bool
    orphan: bool


@never_cache
@login_required
@require_safe
def show(request: HttpRequest, uid: str) -> HttpResponse:
    """GET /responses/ID/chain."""
    row = get_response(request, uid)
    mine = visible_responses(request.user).filter(project=row.project)
    found = list(mine.filter(thread=row.thread).order_by("-pk").defer("history", "metadata")[: MOST + 1])
    return render_page(
        request,
        row,
        "response-chain",
        "web/chain.html",
        branches=_tree(rows(found[:MOST][::-1])),
        more=len(found) > MOST,
        most=MOST,
        parent=mine.filter(uid=row.previous_uid).first() if row.previous_uid else None,
    )


def _tree(lines: Sequence[ResponseRow]) -> list[LineageBranch]:
    """Each response behind the one it continues; a straight line stays at its depth, a fork goes one to the right."""
    known = {line.response.uid for line in lines}
    children: dict[str | None, list[ResponseRow]] = {}
    for line in lines:
        parent = line.response.previous_uid
        children.setdefault(parent if parent in known else None, []).append(line)
    placed: list[LineageBranch] = []
    # A stack and no recursion: a chain may have any length.
    waiting = [(line, 0, False) for line in reversed(children.get(None, []))]
    while waiting:
        line, depth, fork = waiting.pop()
        orphan = bool(line.response.previous_uid) and line.response.previous_uid not in known
        placed.append(LineageBranch(line, min(depth, DEEPEST), fork, orphan))
        waiting += _behind(children.get(line.response.uid, []), depth)
    return placed


def _behind(lines: Sequence[ResponseRow], depth: int) -> Iterable[tuple[ResponseRow, int, bool]]:
    """The continuations, the last one on the stack first; all but the first one are forks."""
    forks = [(line, depth + 1, True) for line in lines[1:]]
    # Forks come before the long line that goes on, so that they stand where they fork off.
    return [*((line, depth, False) for line in lines[:1]), *reversed(forks)]
