"""The share of a project of RESPONSES_MAX_CONCURRENT, while other projects send requests too."""

from __future__ import annotations

from contextlib import suppress

from django.test import override_settings

from responses_app.errors import RateLimited
from responses_app.runs.admission import RECENT_S, Admission, Place

LIMIT = 16


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def fill(admission: Admission, project: str) -> list[Place]:
    places: list[Place] = []
    with suppress(RateLimited):
        while len(places) <= LIMIT:
            places.append(admission.admit(project))
    return places


@override_settings(RESPONSES_MAX_CONCURRENT=LIMIT)
def test_a_project_alone_takes_all_places() -> None:
    assert len(fill(Admission(), "busy")) == LIMIT


@override_settings(RESPONSES_MAX_CONCURRENT=LIMIT)
def test_a_second_project_finds_the_last_eighth() -> None:
    admission = Admission()
    admission.admit("quiet").release()
    assert len(fill(admission, "busy")) == LIMIT - 2
    assert len(fill(admission, "quiet")) == 2
    assert sum(admission.counts.values()) == LIMIT


@override_settings(RESPONSES_MAX_CONCURRENT=LIMIT)
def test_places_are_kept_for_ten_minutes_after_the_last_request() -> None:
    clock = Clock()
    admission = Admission(clock=clock)
    admission.admit("quiet").release()
    places = fill(admission, "busy")
    clock.now = RECENT_S + 1
    assert len(places) + len(fill(admission, "busy")) == LIMIT


@override_settings(RESPONSES_MAX_CONCURRENT=LIMIT)
def test_released_places_leave_nothing_behind() -> None:
    admission = Admission()
    for place in fill(admission, "busy"):
        place.release()
        place.release()
    assert not admission.by_project
    assert not sum(admission.counts.values())
