"""Limits by model: a setting with one number for all models, and numbers for single models."""

from __future__ import annotations

from collections.abc import Mapping

from django.core.exceptions import ImproperlyConfigured

# Key of the number that holds for all other models.
ALL = ""


def parse_limits(name: str, text: str, minimum: int) -> Mapping[str, int]:
    """Parse a setting like `4096 big=8192` to numbers by model; 0 means no limit. Raises ImproperlyConfigured."""
    limits: dict[str, int] = {}
    for entry in text.split():
        model, _, number = entry.rpartition("=")
        if not number.isascii() or not number.isdigit() or 0 < int(number) < minimum:
            raise ImproperlyConfigured(
                f"{name}: {entry!r} must be a whole number of at least {minimum} or 0 for no limit, alone or as model={minimum}"
            )
        if model in limits:
            raise ImproperlyConfigured(f"{name}: {'the number for all models' if model == ALL else model!r} stands twice")
        limits[model] = int(number)
    return limits
