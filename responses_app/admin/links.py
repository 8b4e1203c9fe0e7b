"""Links of admin pages, each for persons who may open the linked page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.contrib.admin import ModelAdmin
from django.db.models import ForeignKey, Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString


class LinksAdmin(ModelAdmin):  # type: ignore[type-arg]
    """Admin whose read-only pages have links alone that the person may open. Django links every row."""

    # Methods of fields that take the request before the row.
    request_fields: Sequence[str] = ()

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the fields, with functions for fields whose links depend on the person."""
        fields = super().get_fields(request, obj)
        if obj is None or self.has_change_permission(request, obj):
            return fields
        return [
            self._field(request, line) if isinstance(line, str) else [self._field(request, str(name)) for name in line]
            for line in fields
        ]

    def may_view(self, request: HttpRequest, model: type[Model]) -> bool:
        """Return whether the person may open the pages of `model`."""
        return self.admin_site.is_registered(model) and self.admin_site.get_model_admin(model).has_view_permission(request)

    def link(self, request: HttpRequest, row: Model | None, missing: str) -> str | SafeString:
        """Return the id of `row`, with a link for who may open it, or `missing` without a row."""
        if row is None:
            return missing
        if not self.may_view(request, type(row)):
            return str(row)
        return format_html('<a href="{}">{}</a>', reverse(_url_name(type(row), "change"), args=[row.pk]), row)

    def list_link(self, request: HttpRequest, model: type[Model], query: str, text: str) -> Sequence[tuple[str, str]]:
        """Return address and text of the list of `model` with `query`; nothing for a person who may not open it."""
        return [(f"{reverse(_url_name(model, 'changelist'))}?{query}", text)] if self.may_view(request, model) else []

    def _field(self, request: HttpRequest, name: str) -> str | Callable[[Any], Any]:
        if name in self.request_fields:
            method = getattr(self, name)
            return _named(name, method.short_description, lambda row: method(request, row))
        field = next((one for one in self.opts.fields if one.name == name), None)
        if not isinstance(field, ForeignKey) or self.may_view(request, field.related_model):
            return name
        empty = self.get_empty_value_display()
        return _named(name, str(field.verbose_name), lambda row: str(getattr(row, name) or empty))


def joined(links: Sequence[tuple[str, str]]) -> SafeString:
    """Return links in a line."""
    return format_html_join(" · ", '<a href="{}">{}</a>', links)


def _named(name: str, label: str, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    function.__name__ = name
    function.short_description = label  # type: ignore[attr-defined]
    return function


def _url_name(model: type[Model], page: str) -> str:
    return f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"
