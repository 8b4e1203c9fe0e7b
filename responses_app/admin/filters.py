"""Filters of the lists of the admin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList


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
