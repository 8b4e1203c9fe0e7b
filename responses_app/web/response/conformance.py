"""Validation page of a response: the conformance check of the stored stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from django.http import HttpRequest, HttpResponse

from responses_app.models import LogForm
from responses_app.protocol.conformance import StreamValidator, Violation
from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.reducer import fold
from responses_app.store.log.reader import TERMINAL
from responses_app.web.private import private
from responses_app.web.render.log_events import events
from responses_app.web.render.sanitize import visible
from responses_app.web.response.detail import get_response, render_page

MAX_SHOWN_VIOLATIONS: Final = 100


@private("GET", "HEAD")
def show(request: HttpRequest, uid: str) -> HttpResponse:
    """Render GET /responses/ID/check."""
    row = get_response(request, uid)
    if row.log_form == LogForm.WITHOUT_DELTAS:
        return render_page(request, row, "response-check", "web/conformance.html", without_deltas=True)
    report = ConformanceReport(events(row.pk))
    return render_page(
        request,
        row,
        "response-check",
        "web/conformance.html",
        count=report.count,
        ended=report.has_ended,
        violations=[
            (violation.rule, violation.number, visible(violation.message[:500]))
            for violation in report.violations[:MAX_SHOWN_VIOLATIONS]
        ],
        total=len(report.violations),
        snapshot_matches=report.snapshot_matches if report.has_ended else None,
    )


class ConformanceReport:
    """Violations of a log and the result of reducing the events, from a single pass with constant memory."""

    def __init__(self, log: Iterator[dict[str, Any]]) -> None:
        self.count = 0
        self.last: dict[str, Any] = {}
        self.violations: list[Violation] = []
        self._validator = StreamValidator()
        validated = self._validate(log)
        try:
            self._reduced: dict[str, Any] | None = fold(validated)
        except ProtocolError:
            self._reduced = None
        # Validate the events behind an event that the reducer rejects.
        for _ in validated:
            pass
        if self.has_ended:
            self.violations += self._validator.close()

    @property
    def has_ended(self) -> bool:
        """Return True if the log has a terminal event."""
        return self.last.get("type") in TERMINAL

    @property
    def snapshot_matches(self) -> bool:
        """Return True if the reduced events equal the snapshot in the terminal event."""
        return self._reduced is not None and self._reduced == self.last["response"]

    def _validate(self, log: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for event in log:
            self.count, self.last = self.count + 1, event
            self.violations += self._validator.feed(event)
            yield event
