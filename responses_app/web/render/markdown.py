"""Markdown of a model as HTML: text is escaped, links lead away without a trace, and no picture is fetched from anywhere."""

from __future__ import annotations

from functools import cache

from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.token import Token

from responses_app.web.render.sanitize import visible


@cache
def _reader() -> MarkdownIt:
    # Without `html`, what looks like HTML is text; links to scripts are refused by the library itself.
    reader = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")
    return reader


def markdown(text: str) -> SafeString:
    """The text as HTML that can do nothing."""
    reader = _reader()
    tokens = reader.parse(visible(text))
    for token in tokens:
        # The policy of the pages lets no element have a style of its own.
        if style := token.attrs.pop("style", None):
            token.attrSet("class", str(style).rpartition(":")[2])
        # The pages have h1 and h2 of their own.
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + 2, 6)}"
        for child in token.children or ():
            _safe_link(child)
    html = str(reader.renderer.render(tokens, reader.options, {}))
    return SafeString(html)  # The renderer has escaped it, and was told of no HTML.


def _safe_link(token: Token) -> None:
    if token.type == "link_open":
        token.attrSet("rel", "noreferrer noopener nofollow")
