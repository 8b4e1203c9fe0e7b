"""Markdown of a model as safe HTML: escaped text, links without referrer, no images."""

from __future__ import annotations

from functools import cache

from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.token import Token

from responses_app.web.render.sanitize import visible


@cache
def _parser() -> MarkdownIt:
    # `html: False` escapes HTML tags. markdown-it rejects `javascript:` links by default.
    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")


def markdown(text: str) -> SafeString:
    """Render Markdown as HTML without scripts, images, styles or raw HTML."""
    parser = _parser()
    tokens = parser.parse(visible(text))
    for token in tokens:
        # The Content-Security-Policy forbids inline styles, so that `text-align: right` becomes the class `right`.
        if style := token.attrs.pop("style", None):
            token.attrSet("class", str(style).rpartition(":")[2])
        # h1 and h2 are headings of the page.
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + 2, 6)}"
        for child in token.children or ():
            _protect_link(child)
    html = str(parser.renderer.render(tokens, parser.options, {}))
    return SafeString(html)  # The renderer has escaped all text.


def _protect_link(token: Token) -> None:
    if token.type == "link_open":
        token.attrSet("rel", "noreferrer noopener nofollow")
