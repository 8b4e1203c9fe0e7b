"""Error of a model that cannot be served."""

from __future__ import annotations


class CannotServe(Exception):
    """Model that cannot be served; with a message about the reason and the remedy."""
