"""Filters `full_time` and `short_time`: dates in the time zone of the pages."""

from __future__ import annotations

from datetime import datetime

from django import template
from django.utils import timezone
from django.utils.dateformat import format as formatted

register = template.Library()


@register.filter
def full_time(moment: datetime) -> str:
    """Return the date, the time and the name of the zone: 2026-11-22 11:35:01 UTC."""
    return formatted(timezone.localtime(moment), "Y-m-d H:i:s T")


@register.filter
def short_time(moment: datetime) -> str:
    """Return the day and the time, with the year unless the year is the current year. The page names the zone separately."""
    local = timezone.localtime(moment)
    return formatted(local, "M j, H:i:s" if local.year == timezone.localtime().year else "M j, Y, H:i:s")
