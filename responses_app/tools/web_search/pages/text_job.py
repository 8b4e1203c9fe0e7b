"""Text of a page: the function of the worker process. The payload and the result are JSON objects, the payload with the bytes behind."""

from __future__ import annotations

import re
import textwrap
from urllib.parse import urlsplit

import orjson

from responses_app.extraction.formats.html_markdown import html_to_markdown
from responses_app.utils.invisible import SHOWN_BY_NAME

LINE_WIDTH = 80
MAX_LINES = 20_000
MAX_LINKS = 1000
MAX_TITLE = 200
_LINK = re.compile(r"!?\[([^\[\]\n]{0,500})\]\((https?://[^\s()]{1,2000})\)")
_CHARSET = re.compile(rb"<meta[^>]{0,200}charset=[\"']?\s*([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
_HEADING = re.compile(r"^#\s+(.{1,200})$", re.MULTILINE)
# The characters of link marks and citations, which a page could forge.
_MARKS = str.maketrans({"【": "〖", "】": "〗", "†": "‡"})


def encode_job(url: str, media_type: str, charset: str, data: bytes) -> bytes:
    """Encode the payload of a job."""
    head = orjson.dumps({"url": url, "media_type": media_type, "charset": charset})
    return len(head).to_bytes(4, "big") + head + data


def handle(payload: bytes) -> bytes:
    """Return the title, the lines and the links of a page."""
    size = int.from_bytes(payload[:4], "big")
    head, data = orjson.loads(payload[4 : 4 + size]), payload[4 + size :]
    is_html = head["media_type"] in ("text/html", "application/xhtml+xml")
    source = _decode(data, head["charset"], is_html)
    title, text = html_to_markdown(source, head["url"], main_only=True) if is_html else ("", source)
    if not title and (heading := _HEADING.search(text)):
        title = heading[1]
    text = SHOWN_BY_NAME.sub("", text.translate(_MARKS).replace("\r\n", "\n").replace("\t", " "))
    links: dict[str, int] = {}
    marked = _LINK.sub(lambda match: _mark(match, links, head["url"]), text)
    return orjson.dumps({"title": _one_line(title), "lines": _wrap(marked), "links": list(links)})


def _decode(data: bytes, charset: str, is_html: bool) -> str:
    declared = _CHARSET.search(data[:4096]) if is_html else None
    for name in (charset, declared[1].decode() if declared else "", "utf-8-sig"):
        try:
            return data.decode(name)
        except (LookupError, UnicodeError):
            continue
    return data.decode("cp1252", "replace")


def _mark(match: re.Match[str], links: dict[str, int], url: str) -> str:
    text, target = match[1].strip() or match[2], match[2]
    if target not in links and len(links) == MAX_LINKS:
        return text
    number, domain = links.setdefault(target, len(links)), _domain(target)
    return f"【{number}†{text}】" if domain == _domain(url) else f"【{number}†{text}†{domain}】"


def _domain(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""


def _one_line(text: str) -> str:
    return " ".join(SHOWN_BY_NAME.sub("", text.translate(_MARKS)).split())[:MAX_TITLE]


def _wrap(text: str) -> list[str]:
    """Return lines of up to LINE_WIDTH characters, MAX_LINES at most."""
    lines: list[str] = []
    for line in text.split("\n"):
        lines += textwrap.wrap(line, LINE_WIDTH, replace_whitespace=False, break_on_hyphens=False) or [""]
        if len(lines) > MAX_LINES:
            break
    return [*lines[:MAX_LINES], *(["[The page is cut here.]"] if len(lines) > MAX_LINES else [])]
