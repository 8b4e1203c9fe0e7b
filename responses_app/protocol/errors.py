"""Error of the protocol: a call of the writer out of turn."""

from __future__ import annotations


class ProtocolError(Exception):
    """Bug of the caller: a delta or a call that is not possible now, or a log that no writer can have written.

    The error is raised before any change, so the caller can still end the response with `Writer.fail`.
    """
