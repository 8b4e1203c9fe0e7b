"""Error of a model that cannot be served."""

from __future__ import annotations


class CannotServe(Exception):
    """Model that cannot be served; the message says why and what to do."""
