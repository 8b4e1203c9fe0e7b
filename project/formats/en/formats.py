"""Formats of the admin: like the other pages with 24 hours, and with seconds and the time zone, which an audit log needs."""

from __future__ import annotations

from typing import Final

DATE_FORMAT: Final = "Y-m-d"
TIME_FORMAT: Final = "H:i:s"
DATETIME_FORMAT: Final = "Y-m-d H:i:s T"
