"""Chain page of a response: the tree of previous and next responses, or the responses of the conversation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest, HttpResponse

from responses_app.access.permissions import visible_responses
from responses_app.models import Response
from responses_app.web.private import private
from responses_app.web.response.detail import get_response, render_page
from responses_app.web.responses.rows import ResponseRow, rows

# Only the newest responses of a thread or a conversation are shown.
MAX_RESPONSES: Final = 200
# Newest reruns of these that are in other threads.
MAX_RERUNS: Final = 50
# Deeper branches have the same indentation.
MAX_DEPTH: Final = 12


@dataclass(frozen=True, slots=True)
class LineageBranch:
    """Response in the tree. `is_fork` marks all continuations of a response except the first; `is_orphan` lacks the previous response.

    `turn` is its place from the first response, that of the original for a rerun; None behind a response that is not shown.
    """

    line: ResponseRow
    depth: int
    is_fork: bool
    is_orphan: bool
    turn: int | None


@private("GET", "HEAD")
def show(request: HttpRequest, uid: str) -> HttpResponse:
    """Render GET /responses/ID/chain."""
    row = get_response(request, uid)
    visible = visible_responses(request.user).filter(project=row.project)
    # The rerun of a first response begins a thread of its own.
    threads = {row.thread, *visible.filter(uid=row.rerun_of or None).values_list("thread", flat=True)}
    light = visible.order_by("-pk").defer("history", "metadata")
    newest = list(light.filter(thread__in=threads)[: MAX_RESPONSES + 1])
    uids = [one.uid for one in newest[:MAX_RESPONSES]]
    reruns = list(light.filter(rerun_of__in=uids).exclude(thread__in=threads)[:MAX_RERUNS])
    shown = sorted([*newest[:MAX_RESPONSES], *reruns], key=lambda one: one.pk)
    branches = _tree(rows(shown))
    return render_page(
        request,
        row,
        "response-chain",
        "web/lineage.html",
        branches=branches,
        turn=next((branch.turn for branch in branches if branch.line.response.pk == row.pk), None),
        turns=max((branch.turn or 0 for branch in branches), default=0),
        more=len(newest) > MAX_RESPONSES,
        max_responses=MAX_RESPONSES,
        parent=visible.filter(uid=row.previous_uid).first() if row.previous_uid else None,
    )


def _tree(lines: Sequence[ResponseRow]) -> list[LineageBranch]:
    """Order each response behind the previous response, and each rerun below its original.

    A first continuation has the depth of the parent, forks and reruns are deeper.
    """
    by_uid = {line.response.uid: line for line in lines}
    children: dict[str | None, list[ResponseRow]] = {}
    reruns: dict[str, list[ResponseRow]] = {}
    for line in lines:
        response = line.response
        if _is_below_original(response, by_uid):
            reruns.setdefault(response.rerun_of, []).append(line)
        else:
            children.setdefault(response.previous_uid if response.previous_uid in by_uid else None, []).append(line)
    ordered: list[LineageBranch] = []
    turns: dict[str, int | None] = {}
    # A stack instead of recursion, because a chain may have any length.
    stack = [(line, 0, False) for line in reversed(children.get(None, []))]
    while stack:
        line, depth, is_fork = stack.pop()
        response = line.response
        is_orphan = bool(response.previous_uid) and response.previous_uid not in by_uid
        before = turns.get(response.previous_uid or "") if response.previous_uid else _roots_before(response, ordered)
        turns[response.uid] = turn = None if is_orphan or before is None else before + 1
        ordered.append(LineageBranch(line, min(depth, MAX_DEPTH), is_fork, is_orphan, turn))
        stack += _continuations(children.get(response.uid, []), depth)
        stack += [(one, depth + 1, False) for one in reversed(reruns.get(response.uid, []))]
    return ordered


def _roots_before(response: Response, ordered: Sequence[LineageBranch]) -> int:
    """Return the number of responses of the same conversation above the first response of a thread."""
    same = (branch.line.response.conversation_id == response.conversation_id for branch in ordered)
    return sum(same) if response.conversation_id else 0


def _is_below_original(response: Response, by_uid: Mapping[str, ResponseRow]) -> bool:
    """Return whether a rerun stands below its original: not if it continues another rerun, as the answers to calls do."""
    previous = by_uid.get(response.previous_uid or "")
    original = by_uid.get(response.rerun_of)
    # Ids grow with time, and an original is older, so that no circle is possible.
    is_older = original is not None and original.response.pk < response.pk
    return is_older and not (previous is not None and previous.response.rerun_of)


def _continuations(lines: Sequence[ResponseRow], depth: int) -> Iterable[tuple[ResponseRow, int, bool]]:
    """Return the stack entries of the continuations, with depth and fork mark, last first."""
    forks = [(line, depth + 1, True) for line in lines[1:]]
    # Forks are listed before the first continuation, so that forks stand next to their parent.
    return [*((line, depth, False) for line in lines[:1]), *reversed(forks)]
