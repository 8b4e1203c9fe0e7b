"""The errors of Twisted, which it would print as they are, as records of Python's logging."""

from __future__ import annotations

from twisted.logger import (
    FilteringLogObserver,
    LogLevel,
    LogLevelFilterPredicate,
    STDLibLogObserver,
    globalLogBeginner,
)


def begin() -> None:
    """Send Twisted's errors to the logger `twisted`. The lesser events are dropped before they are formatted."""
    errors = LogLevelFilterPredicate(defaultLogLevel=LogLevel.error)
    globalLogBeginner.beginLoggingTo([FilteringLogObserver(STDLibLogObserver(), [errors])], redirectStandardIO=False)
