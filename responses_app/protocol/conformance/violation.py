"""Violations: broken rules at the events of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

Findings: TypeAlias = Iterator[tuple[str, str]]
"""(rule, message) pairs in the order of their discovery; the validator adds the event."""


@dataclass(frozen=True, slots=True)
class Violation:
    """Broken rule: rule id, `sequence_number` of the event if present, message, and the event (None at the end)."""

    rule: str
    number: int | None
    message: str
    event: Any

    def __str__(self) -> str:
        kind = self.event.get("type") if isinstance(self.event, dict) else None
        where = "at the end" if self.event is None else f"#{'?' if self.number is None else self.number} {kind or 'unreadable'}"
        return f"{self.rule}  {where}  {self.message}"


def integer(value: object) -> int | None:
    """Return `value` if `value` is an integer of at least 0 and no bool, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
