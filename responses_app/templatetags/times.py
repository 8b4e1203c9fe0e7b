"""Filters of times. `web/local_time.js` shows the elements of `local_time` in the time zone of the browser."""

from __future__ import annotations

from datetime import UTC, datetime

from django import template
from django.utils import timezone
from django.utils.dateformat import format as formatted
from django.utils.html import format_html
from django.utils.safestring import SafeString

from responses_app.web.render.item_titles import duration_text

register = template.Library()


@register.filter
def full_time(moment: datetime) -> str:
    """Return the date, the time and the name of the zone: 2026-11-22 11:35:01 UTC."""
    return timezone.localtime(moment).strftime("%Y-%m-%d %H:%M:%S %Z")


@register.filter
def short_time(moment: datetime) -> SafeString:
    """Return a `time` element: day and time, with the year unless it is the current year."""
    year = timezone.localtime(moment).year
    return local_time(moment, "M j, H:i:s" if year == timezone.localtime().year else "M j, Y, H:i:s")


@register.filter
def row_time(moment: datetime) -> SafeString:
    """Return a short `time` element for a row of a table whose `data-format` is that of this year. The script adds the title."""
    local = timezone.localtime(moment)
    if local.year != timezone.localtime().year:
        return short_time(moment)
    instant = local.isoformat(timespec="seconds").replace("+00:00", "Z")
    return format_html('<time datetime="{}">{}</time>', instant, formatted(local, "M j, H:i:s"))


@register.filter
def local_time(moment: datetime, form: str = "Y-m-d H:i") -> SafeString:
    """Return a `time` element with the text in a date format of Django, of the letters that `web/local_time.js` knows."""
    local = timezone.localtime(moment)
    instant = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return format_html(
        '<time datetime="{}" title="{}" data-format="{}">{}</time>', instant, full_time(moment), form, formatted(local, form)
    )


@register.filter
def duration(ms: float) -> str:
    """Return milliseconds in words: `66 ms`, `1.2 s` or `2 min 3 s`."""
    return duration_text(ms / 1000)


@register.simple_tag
def zone() -> SafeString:
    """Return the name of the zone of the pages with a full stop, for the end of a line. The script replaces the name by words.

    Text behind the name would move when the script replaces the name.
    """
    return format_html('<span data-zone="{0}">{0}.</span>', formatted(timezone.localtime(), "T"))
