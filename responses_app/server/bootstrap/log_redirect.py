"""Redirection of the output of libraries to a log file while an engine starts."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from responses_app.installation.data_dir import open_log
from responses_app.utils.invisible import escaped

TAIL = 20
# vLLM's error for a failed process of the engine, whose own exception is in the log only.
ROOT_CAUSE = "root cause"
_EXCEPTION = re.compile(r"\b\w*(?:Error|Exception): (.+)")


def terminal() -> TextIO:
    """Return a stream to the current target of stderr, independent of later redirections."""
    return os.fdopen(os.dup(2), "w", errors="replace")


@contextmanager
def redirect_output(log: Path) -> Iterator[None]:
    """Redirect stdout and stderr to `log`; child processes started meanwhile inherit the redirection."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [(fd, os.dup(fd)) for fd in (1, 2)]
    target = open_log(log, os.O_TRUNC | os.O_APPEND)
    try:
        for fd, _ in saved:
            os.dup2(target, fd)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for fd, copy in saved:
            os.dup2(copy, fd)
            os.close(copy)
        os.close(target)


def tail(log: Path) -> str:
    """Return the last lines of a log, for an error message."""
    return "\n".join(map(escaped, log.read_text(errors="replace").splitlines()[-TAIL:]))


def find_root_cause(log: Path) -> str | None:
    """Return the message of the last exception in a log that does not point to another one, None if there is none."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if ROOT_CAUSE not in line]
    messages = [match[1] for match in map(_EXCEPTION.search, lines) if match]
    return escaped(messages[-1]) if messages else None
