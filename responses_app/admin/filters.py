"""Filters beside the lists of the admin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import ForeignKey, Model
from django.http import HttpRequest
from django.utils.safestring import SafeString

MAX_CHOICES: Final = 50


class HasTimeFilter(admin.EmptyFieldListFilter):
    """Filter by whether a time is set, as of "revoked at", with the words "revoked", Yes and No."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Name the filter after the field, without "at"."""
        super().__init__(*args, **kwargs)
        self.title = str(self.title).removesuffix(" at")

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """Return All, Yes and No. Django has the words Empty and Not empty."""
        every, is_null, is_set = super().choices(changelist)
        yield every
        yield {**is_set, "display": "Yes"}
        yield {**is_null, "display": "No"}


class NewestFilter(admin.RelatedFieldListFilter):
    """Filter by a row of another table, with the newest rows of it and the chosen one. Django reads and shows all of the table."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Name the choice of the rows without one. Django has a dash."""
        super().__init__(*args, **kwargs)
        self.empty_value_display = SafeString("None")

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[Any]:
        """Return the keys and names of the rows."""
        del request, model_admin
        return list(_choices(field, [int(pk) for pk in self.lookup_val or () if pk.isdecimal()]))


def _choices(field: ForeignKey[Any], chosen: list[int]) -> Iterator[tuple[str, str]]:
    model: type[Model] = field.remote_field.model
    newest = list(model._default_manager.order_by("-pk")[:MAX_CHOICES])
    shown = {row.pk for row in newest}
    for row in (*newest, *model._default_manager.filter(pk__in=[pk for pk in chosen if pk not in shown])):
        yield str(row.pk), str(row)
