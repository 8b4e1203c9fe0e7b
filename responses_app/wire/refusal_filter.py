"""Log filter for refused requests: a mistake of the client needs no traceback."""

from __future__ import annotations

import logging

from django.core.exceptions import BadRequest, PermissionDenied, SuspiciousOperation
from django.http import Http404
from django.http.multipartparser import MultiPartParserError

REFUSALS = (BadRequest, Http404, MultiPartParserError, PermissionDenied, SuspiciousOperation)


class RefusalFilter(logging.Filter):
    """Logging filter. Removes the traceback from records of refused requests; every record passes."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Remove the traceback of a refused request."""
        if record.exc_info and isinstance(record.exc_info[1], REFUSALS):
            record.exc_info = record.exc_text = None
        return True
