"""Findings of checks, and the run of checks, each of which may fail by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class FindingStatus(StrEnum):
    """Status of a finding. Only FAILED makes the exit code 1."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of a check: a sentence, with the remedy unless the status is OK."""

    name: str
    status: FindingStatus
    message: str


# Check: a name, and a function that yields a status and a sentence for each part.
CheckResults: TypeAlias = Iterator[tuple[FindingStatus, str]]
Check: TypeAlias = Callable[[], CheckResults]

OK, WARNING, FAILED, SKIPPED = FindingStatus.OK, FindingStatus.WARNING, FindingStatus.FAILED, FindingStatus.SKIPPED


def run_checks(checks: Iterable[tuple[str, Check]]) -> Iterator[Finding]:
    """Run checks in order and yield the findings. An exception of a check is a failed finding."""
    for name, check in checks:
        try:
            for status, message in check():
                yield Finding(name, status, message)
        except Exception as error:
            reason = str(error).strip().splitlines()
            yield Finding(name, FAILED, f"The check ended with {type(error).__name__}: {reason[0] if reason else 'no message'}")
