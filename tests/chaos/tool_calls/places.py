"""Places of a response with tool calls at which the process that runs the response is killed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.chaos.tool_calls.counting_server import GUARDED, SAFE, UNSAFE

LISTING, WRITING, RUNNING, FINISHING, APPROVED = (
    "listing",
    "before the end of the round",
    "tool runs",
    "result",
    "approved call",
)


@dataclass(frozen=True, slots=True)
class KillPlace:
    """Place of a kill: `delay_s` seconds behind the event number `event`, or behind the run of the tool `tool`.

    With `closed` the tools wait until another process has taken the response over. With `approved` the response runs a call that
    was approved, and begins with that call.
    """

    stage: str
    event: int | None = None
    tool: str | None = None
    delay_s: float = 0.0
    closed: bool = False
    approved: bool = False

    def __str__(self) -> str:
        behind = f"event {self.event}" if self.tool is None else f"the run of '{self.tool}'"
        return f"{self.stage}, {self.delay_s * 1000:.0f} ms behind {behind}"


def places(count: int) -> Sequence[KillPlace]:
    """Return `count` places, at most 40, distributed over all stages."""
    candidates = [
        *(KillPlace(LISTING, event=3, delay_s=ms / 1000) for ms in (0, 5, 10, 20)),
        *(KillPlace(WRITING, event=number) for number in (1, 5, 7, 8, 9, 10, 11, 12)),
        # The model writes the next call while the first tools run.
        *(KillPlace(RUNNING, tool=UNSAFE, delay_s=ms / 1000, closed=True) for ms in (0, 5, 20, 100)),
        *(KillPlace(RUNNING, tool=SAFE, delay_s=ms / 1000, closed=True) for ms in (0, 5, 20, 300)),
        *(KillPlace(FINISHING, tool=UNSAFE, delay_s=ms / 1000) for ms in (0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30)),
        *(KillPlace(APPROVED, event=number, approved=True) for number in (1, 3)),
        *(KillPlace(APPROVED, tool=GUARDED, delay_s=ms / 1000, closed=True, approved=True) for ms in (0, 20)),
        *(KillPlace(APPROVED, tool=GUARDED, delay_s=ms / 1000, approved=True) for ms in (0, 2, 5, 10)),
    ]
    return [candidates[at * len(candidates) // count] for at in range(count)]
