"""Errors of edits."""

from __future__ import annotations


class CannotEdit(ValueError):
    """Content that cannot be parsed, or has a form that an edit would break."""
