"""Findings of a chaos test: contradictions, and figures for its table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

SHOWN = 300  # Characters of what was seen.


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Contradiction: the response, the event number, the bytes that were seen, and the bytes of the log."""

    uid: str
    number: int | None
    what: str
    seen: str = ""
    log: str = ""

    def __str__(self) -> str:
        where = self.uid if self.number is None else f"{self.uid} #{self.number}"
        lines = [f"{where}: {self.what}"]
        lines += [f"    {name:<5} {text[:SHOWN]}" for name, text in (("seen:", self.seen), ("log:", self.log)) if text]
        return "\n".join(lines)


@dataclass(slots=True)
class Findings:
    """Findings of a run: contradictions, counts, failures and lines of the table."""

    wrong: list[Contradiction] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    rows: list[tuple[str, str]] = field(default_factory=list)

    def contradict(self, uid: str, what: str, *, number: int | None = None, seen: object = "", log: object = "") -> None:
        """Add a contradiction."""
        self.wrong.append(Contradiction(uid, number, what, _text(seen), _text(log)))

    def count(self, name: str, by: int = 1) -> None:
        """Add `by` to a count."""
        self.counts[name] += by

    def row(self, name: str, value: object) -> None:
        """Add a line to the table."""
        self.rows.append((name, str(value)))


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
