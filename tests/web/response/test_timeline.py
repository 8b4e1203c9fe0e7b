"""Timeline of a response: phases and rate bars from the times of the events."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice
from unittest import TestCase

from hypothesis import given
from hypothesis import strategies as st

from responses_app.store.log.event_index import EventHeader
from responses_app.web.response.timelines.timeline import Timeline, timeline

REASONING, TEXT, CALL, CODE = (
    "response.reasoning_text.delta",
    "response.output_text.delta",
    "response.function_call_arguments.delta",
    "response.code_interpreter_call_code.delta",
)


def drawn(*events: tuple[str, int], queued: bool = False) -> Timeline:
    """Build the timeline of a log with `events` between the first and the last event."""
    first_events = [
        ("response.created", 0),
        *([("response.queued", 0)] if queued else []),
        ("response.in_progress", 41 if queued else 0),
    ]
    drawn_timeline = timeline([EventHeader(number, *event) for number, event in enumerate([*first_events, *events])])
    assert drawn_timeline is not None
    return drawn_timeline


def sums(drawn_timeline: Timeline) -> dict[str, int]:
    """Milliseconds by phase."""
    return {name: ms for name, _, ms in drawn_timeline.sums}


def steadily(
    per_second: float, count: int, start: int, kind: str = TEXT, delays_ms: Sequence[float] = (0,)
) -> list[tuple[str, int]]:
    """Build deltas of a constant rate from `start` milliseconds on, each late by the next of `delays_ms`, in a cycle."""
    late = islice(cycle(delays_ms), count)
    return [(kind, round(start + n * 1000 / per_second + delay_ms)) for n, delay_ms in enumerate(late)]


class PhasesTest(TestCase):
    """Phases of the timeline."""

    def test_prefill_ends_with_the_first_delta_also_if_it_shares_its_millisecond_with_the_item(self) -> None:
        drawn_phases = drawn(
            ("response.output_item.added", 208), (REASONING, 208), (REASONING, 258), ("response.completed", 300), queued=True
        )
        self.assertEqual(sums(drawn_phases), {"queue": 41, "prefill": 167, "reasoning": 92})

    def test_prefill_ends_with_the_first_delta_in_a_later_millisecond(self) -> None:
        drawn_phases = drawn(("response.output_item.added", 208), (TEXT, 210), (TEXT, 260))
        self.assertEqual(sums(drawn_phases), {"prefill": 210, "text": 50})

    def test_a_long_wait_is_stalled_and_calls_are_tool_calls(self) -> None:
        drawn_phases = drawn((TEXT, 100), (TEXT, 120), (TEXT, 140), (TEXT, 2140), (CALL, 2150))
        self.assertEqual(sums(drawn_phases), {"prefill": 100, "text": 40, "silence": 2000, "tool": 10})

    def test_a_wait_for_a_container_is_time_of_the_tool(self) -> None:
        started = "response.code_interpreter_call.interpreting"
        drawn_phases = drawn(
            (TEXT, 100), (TEXT, 120), (CODE, 140), (started, 3140), ("response.code_interpreter_call.completed", 3240)
        )
        self.assertEqual(sums(drawn_phases), {"prefill": 100, "text": 20, "tool": 20, "run": 3100})


class RateTest(TestCase):
    """Rate bars of the timeline."""

    def test_short_answers_show_their_true_rate(self) -> None:
        for rate, count in ((198, 40), (198, 23), (46.7, 20), (46.7, 12), (900, 200), (10, 9)):
            with self.subTest(rate=rate, count=count):
                drawn_phases = drawn(*steadily(rate, count, 217), ("response.completed", 217 + round(count * 1000 / rate)))
                for bar in drawn_phases.bars:
                    self.assertAlmostEqual(bar.rate, rate, delta=rate * 0.1)
                self.assertTrue(drawn_phases.bars)

    @given(st.lists(st.floats(0, 4), min_size=1, max_size=40))
    def test_jitter_does_not_raise_the_rate(self, delays_ms: list[float]) -> None:
        drawn_phases = drawn(*steadily(200, 400, 300, delays_ms=delays_ms))
        self.assertLess(drawn_phases.fastest, 240)

    def test_groups_of_deltas_do_not_raise_the_rate(self) -> None:
        grouped = [(TEXT, 100 + step * 50) for step in range(30) for _ in range(5)]
        for bar in drawn(*grouped).bars:
            self.assertAlmostEqual(bar.rate, 100, delta=1)

    def test_bars_lie_in_their_phase_and_in_the_picture(self) -> None:
        events = [*steadily(100, 60, 500, REASONING), *steadily(100, 60, 1500), *steadily(100, 60, 6000, CALL)]
        drawn_phases = drawn(("response.output_item.added", 499), *events, ("response.completed", 6700))
        phases = {"reasoning": (500, 1090), "text": (1500, 2090), "tool": (6000, 6590)}
        for bar in drawn_phases.bars:
            first, last = phases[bar.name]
            self.assertGreaterEqual(bar.start, first)
            self.assertLessEqual(bar.end, last)
            self.assertAlmostEqual(bar.x, bar.start / 6.7, delta=0.01)
            self.assertLessEqual(bar.x + bar.width, 1000)
        self.assertEqual({bar.name for bar in drawn_phases.bars}, set(phases))

    def test_all_deltas_but_the_first_of_each_run_are_counted_once(self) -> None:
        drawn_phases = drawn(*steadily(37, 1000, 120))
        self.assertAlmostEqual(sum(bar.rate * (bar.end - bar.start) / 1000 for bar in drawn_phases.bars), 999, delta=0.01)
        self.assertLessEqual(len(drawn_phases.bars), 120)

    def test_deltas_of_one_moment_have_no_rate(self) -> None:
        drawn_phases = drawn((TEXT, 100), (TEXT, 100), (TEXT, 100), ("response.completed", 101))
        self.assertEqual((list(drawn_phases.bars), drawn_phases.fastest), ([], 0.0))
