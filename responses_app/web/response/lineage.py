"""Chain page of a response: the tree of previous and next responses, or the responses of the conversation."""

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

# Only the newest responses of a thread or a conversation are shown.
MAX_RESPONSES: Final = 200
# Deeper branches have the same indentation.
MAX_DEPTH: Final = 12


@dataclass(frozen=True, slots=True)
class LineageBranch:
    """Response in the tree. `is_fork` marks all continuations of a response except the first; `is_orphan` lacks the previous response."""

    line: ResponseRow
    depth: int
    is_fork: bool
    is_orphan: bool


@never_cache
@login_required
@require_safe
def show(request: HttpRequest, uid: str) -> HttpResponse:
    """Render GET /responses/ID/chain."""
    row = get_response(request, uid)
    visible = visible_responses(request.user).filter(project=row.project)
    newest = list(visible.filter(thread=row.thread).order_by("-pk").defer("history", "metadata")[: MAX_RESPONSES + 1])
    return render_page(
        request,
        row,
        "response-chain",
        "web/lineage.html",
        branches=_tree(rows(newest[:MAX_RESPONSES][::-1])),
        more=len(newest) > MAX_RESPONSES,
        max_responses=MAX_RESPONSES,
        parent=visible.filter(uid=row.previous_uid).first() if row.previous_uid else None,
    )


def _tree(lines: Sequence[ResponseRow]) -> list[LineageBranch]:
    """Order each response behind the previous response. A first continuation has the depth of the parent, forks are deeper."""
    uids = {line.response.uid for line in lines}
    children: dict[str | None, list[ResponseRow]] = {}
    for line in lines:
        parent = line.response.previous_uid
        children.setdefault(parent if parent in uids else None, []).append(line)
    ordered: list[LineageBranch] = []
    # A stack instead of recursion, because a chain may have any length.
    stack = [(line, 0, False) for line in reversed(children.get(None, []))]
    while stack:
        line, depth, is_fork = stack.pop()
        is_orphan = bool(line.response.previous_uid) and line.response.previous_uid not in uids
        ordered.append(LineageBranch(line, min(depth, MAX_DEPTH), is_fork, is_orphan))
        stack += _continuations(children.get(line.response.uid, []), depth)
    return ordered


def _continuations(lines: Sequence[ResponseRow], depth: int) -> Iterable[tuple[ResponseRow, int, bool]]:
    """Return the stack entries of the continuations, with depth and fork mark, last first."""
    forks = [(line, depth + 1, True) for line in lines[1:]]
    # Forks are listed before the first continuation, so that forks stand next to their parent.
    return [*((line, depth, False) for line in lines[:1]), *reversed(forks)]
