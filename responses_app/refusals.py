"""The log filter for requests that were refused: a refusal is the client's mistake and has no traceback."""

from __future__ import annotations

import logging

from django.core.exceptions import BadRequest, PermissionDenied, SuspiciousOperation
from django.http import Http404
from django.http.multipartparser import MultiPartParserError

REFUSALS = (BadRequest, Http404, MultiPartParserError, PermissionDenied, SuspiciousOperation)


class RefusalFilter(logging.Filter):
    """A filter that takes the traceback from records of refusals, and lets every record pass."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Drop the traceback of a refusal."""
        if record.exc_info and isinstance(record.exc_info[1], REFUSALS):
            record.exc_info = record.exc_text = None
        return True
