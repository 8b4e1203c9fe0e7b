"""Outcome of a task, and the result that a check makes of the outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from bench.client_matrix.recorder import Exchange

Verdict: TypeAlias = Literal["pass", "fail", "skip"]


@dataclass(slots=True)
class TaskOutcome:
    """Outcome of a task: the final text of each turn, the number of text deltas, and the items that Codex prints.

    `error` is the error of the client, `timed_out` the sentence about a limit that was exceeded, `folder` the working folder.
    """

    folder: Path
    texts: list[str] = field(default_factory=list)
    deltas: list[str] = field(default_factory=list)
    items: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None
    timed_out: str | None = None
    seconds: float = 0.0
    exchanges: list[Exchange] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text of the last turn."""
        return self.texts[-1] if self.texts else ""

    @property
    def tokens(self) -> tuple[int, int]:
        """Input and output tokens of all responses."""
        pairs = [exchange.tokens for exchange in self.exchanges]
        return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)


Check: TypeAlias = Callable[[TaskOutcome], str | None]
"""Returns the problem of an outcome in one sentence, or None."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """Result of a task of a client on a model."""

    model: str
    client: str
    task: str
    verdict: Verdict
    reason: str = ""
    seconds: float = 0.0
    tokens: tuple[int, int] = (0, 0)


def judge(outcome: TaskOutcome, check: Check, *, needs_images: bool = False) -> tuple[Verdict, str]:
    """Return the verdict and the reason.

    A broken stream rule fails every task. A failed check names the cause that is nearest to the model: the refusal or the end of a
    response, then the client's error, then the sentence of the check.
    """
    causes = [problem for exchange in outcome.exchanges if (problem := exchange.problem)]
    if needs_images and any("image" in cause.lower() and cause.startswith("HTTP 400") for cause in causes):
        return "skip", "the model does not accept images"
    if outcome.timed_out:
        return "fail", outcome.timed_out
    if broken := [rule for exchange in outcome.exchanges for rule in exchange.violations]:
        return "fail", f"the stream breaks a rule: {' '.join(broken[0].split())}"
    problem = check(outcome)
    if problem is None:
        return "pass", ""
    return "fail", next(iter([*causes, *([outcome.error] if outcome.error else [])]), problem)
