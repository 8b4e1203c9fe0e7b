"""The check view of a response: what the public judge says about this very stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from responses_app.models import LogForm
from responses_app.protocol.conformance import StreamValidator, Violation
from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.reducer import fold
from responses_app.store.log.reader import TERMINAL
from responses_app.web.render.log_events import events
from responses_app.web.render.sanitize import visible
from responses_app.web.response.detail import get_response, render_page

MOST: Final = 100


@never_cache
@login_required
@require_safe
def show(request: HttpRequest, uid: str) -> HttpResponse:
    """GET /responses/ID/check."""
    row = get_response(request, uid)
    if row.log_form == LogForm.WITHOUT_DELTAS:
        return render_page(request, row, "response-check", "web/verdict.html", outline=True)
    judged = ConformanceReport(events(row.pk))
    return render_page(
        request,
        row,
        "response-check",
        "web/verdict.html",
        count=judged.count,
        over=judged.over,
        broken=[(one.rule, one.number, visible(one.message[:500])) for one in judged.broken[:MOST]],
        total=len(judged.broken),
        folds=judged.folds if judged.over else None,
    )


class ConformanceReport:
    """What the judge says of a log, and what its events told, in one pass: of a long log one event at a time is in memory."""

    def __init__(self, told: Iterator[dict[str, Any]]) -> None:
        self.count = 0
        self.last: dict[str, Any] = {}
        self.broken: list[Violation] = []
        self._check = StreamValidator()
        heard = self._heard(told)
        try:
            self._folded: dict[str, Any] | None = fold(heard)
        except ProtocolError:
            self._folded = None
        # What comes behind the event that could not be folded is judged all the same.
        for _ in heard:
            pass
        if self.over:
            self.broken += self._check.close()

    @property
    def over(self) -> bool:
        """Whether the log has come to its end."""
        return self.last.get("type") in TERMINAL

    @property
    def folds(self) -> bool:
        """Whether the events, folded, are the snapshot that the last one carries."""
        return self._folded is not None and self._folded == self.last["response"]

    def _heard(self, told: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for event in told:
            self.count, self.last = self.count + 1, event
            self.broken += self._check.feed(event)
            yield event
