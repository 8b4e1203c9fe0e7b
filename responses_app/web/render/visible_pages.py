"""The middleware that names invisible characters in every HTML page, so that no template has to remember to."""

from __future__ import annotations

import re

from django.http import HttpResponse
from django.http.response import HttpResponseBase

from responses_app.invisible import SHOWN_BY_NAME, named
from responses_app.web.middleware import response_middleware

# The value of a form field is sent back by the browser, and has to stay what it was.
VALUE = re.compile(r' value="[^"]*"')
FIRST_WITH_REFERENCE = 0xA0


def visible_page(html: str) -> str:
    """Name the invisible characters of a page; those of form fields become character references."""
    if SHOWN_BY_NAME.search(html) is None:
        return html
    parts, end = [], 0
    for field in VALUE.finditer(html):
        parts += [named(html[end : field.start()]), SHOWN_BY_NAME.sub(_reference, field[0])]
        end = field.end()
    return "".join([*parts, named(html[end:])])


def _reference(found: re.Match[str]) -> str:
    """Of a control character there is no reference in HTML."""
    return f"&#x{ord(found[0]):X};" if ord(found[0]) >= FIRST_WITH_REFERENCE else named(found[0])


def _visible(response: HttpResponseBase) -> HttpResponseBase:
    if isinstance(response, HttpResponse) and response.headers.get("Content-Type", "").startswith("text/html"):
        html = response.content.decode(response.charset)
        shown = visible_page(html)
        if shown is not html:
            response.content = shown.encode(response.charset)
    return response


middleware = response_middleware(_visible)
