"""The one error of the grammar: somebody in our own house spoke out of turn."""

from __future__ import annotations


class ProtocolError(Exception):
    """Our bug: a piece where none may stand, a call in the wrong order, or a log that no writer could have written.

    It is raised before anything was said or changed, so that the caller can still end the response with `Writer.fail`.
    """
