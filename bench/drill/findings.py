"""What the drill found: contradictions, and figures for its table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

SHOWN = 300  # Characters of what was seen.


@dataclass(frozen=True, slots=True)
class Contradiction:
    """One thing that must not be: which response, where in its log, what was seen, and what there should have been."""

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
    """Filled by everybody."""

    wrong: list[Contradiction] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    rows: list[tuple[str, str]] = field(default_factory=list)

    def contradict(self, uid: str, what: str, *, number: int | None = None, seen: object = "", log: object = "") -> None:
        """Something is not as it must be."""
        self.wrong.append(Contradiction(uid, number, what, _text(seen), _text(log)))

    def count(self, name: str, by: int = 1) -> None:
        """One more of these."""
        self.counts[name] += by

    def row(self, name: str, value: object) -> None:
        """A line of the table."""
        self.rows.append((name, str(value)))


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
