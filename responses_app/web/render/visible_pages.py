"""Middleware to name invisible characters in every HTML page."""

from __future__ import annotations

import re

from django.http import HttpResponse
from django.http.response import HttpResponseBase

from responses_app.utils.invisible import SHOWN_BY_NAME, named
from responses_app.web.delivery.middleware import response_middleware

# The browser sends the value of a form field back, so the value must not change.
VALUE = re.compile(r' value="[^"]*"')
# HTML has no character references for the control characters before this code point.
FIRST_WITH_REFERENCE = 0xA0


def visible_page(html: str) -> str:
    """Name the invisible characters of a page. In form fields, replace invisible characters with character references."""
    if SHOWN_BY_NAME.search(html) is None:
        return html
    parts, end = [], 0
    for field in VALUE.finditer(html):
        parts += [named(html[end : field.start()]), SHOWN_BY_NAME.sub(_reference, field[0])]
        end = field.end()
    return "".join([*parts, named(html[end:])])


def _reference(match: re.Match[str]) -> str:
    """Return the character reference, or the name of a control character without a reference."""
    return f"&#x{ord(match[0]):X};" if ord(match[0]) >= FIRST_WITH_REFERENCE else named(match[0])


def _visible(response: HttpResponseBase) -> HttpResponseBase:
    if isinstance(response, HttpResponse) and response.headers.get("Content-Type", "").startswith("text/html"):
        html = response.content.decode(response.charset)
        visible_html = visible_page(html)
        if visible_html is not html:
            response.content = visible_html.encode(response.charset)
    return response


middleware = response_middleware(_visible)
