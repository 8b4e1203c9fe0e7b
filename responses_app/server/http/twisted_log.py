"""Twisted's errors as records of Python's logging."""

from __future__ import annotations

from twisted.logger import (
    FilteringLogObserver,
    LogLevel,
    LogLevelFilterPredicate,
    STDLibLogObserver,
    globalLogBeginner,
)


def install() -> None:
    """Send Twisted's errors to the logger `twisted`, and drop all other events."""
    errors = LogLevelFilterPredicate(defaultLogLevel=LogLevel.error)
    globalLogBeginner.beginLoggingTo([FilteringLogObserver(STDLibLogObserver(), [errors])], redirectStandardIO=False)
