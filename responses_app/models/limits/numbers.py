"""Columns of limits, whose forms name the smallest limit."""

from __future__ import annotations

from typing import Any

from django.core.validators import MinValueValidator
from django.db import models
from django.forms import Field


class _NamesLeast(models.Field):  # type: ignore[type-arg]
    """Column whose form field has the minimum of the column. That of Django has 0, and refuses -1 with a limit that it then refuses."""

    def formfield(self, *args: Any, **options: Any) -> Field | None:
        """Return the form field."""
        least = max(one.limit_value for one in self._validators if isinstance(one, MinValueValidator))  # type: ignore[attr-defined]
        return super().formfield(*args, **{"min_value": least, **options})

    def deconstruct(self) -> Any:
        """Return the column of Django: the database knows no other."""
        name, _, args, options = super().deconstruct()
        return name, f"django.db.models.{self.get_internal_type()}", args, options


class LimitField(_NamesLeast, models.PositiveIntegerField):  # type: ignore[type-arg]
    """Limit of at most 2,147,483,647. A validator names its minimum."""


class BigLimitField(_NamesLeast, models.PositiveBigIntegerField):  # type: ignore[type-arg]
    """Limit of at most 9,223,372,036,854,775,807. A validator names its minimum."""
