"""Markdown of a model as safe HTML: escaped text, links of known kinds, no images, no styles.

static/web/markdown/markdown.js has the same rules for the browser; tests/web/render/markdown_cases.json is the test of both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token

from responses_app.web.render.math import add_math, set_rendering
from responses_app.web.render.sanitize import visible

# Pages, mail, and downloads of this server. Any other link stays text.
LINK: Final = re.compile(r"^(?:https?://|mailto:|/(?:containers|files)/[\w%./-]+/content$)", re.IGNORECASE | re.ASCII)
# Deeper blocks are left out.
MAX_NESTING: Final = 100
BARE_URL: Final = re.compile(r"https?://[^\s<>()\[\]`*]+", re.ASCII)
URL_END: Final = re.compile(r"[.,;:!?'\"]+$")


@cache
def _parser() -> MarkdownIt:
    # `html: False` escapes HTML tags.
    parser = (
        MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_NESTING}).enable(["table", "strikethrough"]).disable("image")
    )
    add_math(parser)
    parser.validateLink = lambda url: LINK.match(url) is not None  # type: ignore[method-assign]
    set_rendering(parser, "fence", _code)
    set_rendering(parser, "code_block", _code)
    set_rendering(parser, "table_open", lambda _: '<div class="wide" tabindex="0" role="region" aria-label="Table"><table>\n')
    set_rendering(parser, "table_close", lambda _: "</table></div>\n")
    return parser


def markdown(text: str) -> SafeString:
    """Render Markdown as HTML without scripts, images, styles or raw HTML."""
    parser = _parser()
    tokens = parser.parse(visible(text.replace("\r\n", "\n")))
    for token in tokens:
        # The Content-Security-Policy forbids inline styles, so that `text-align: right` becomes the class `right`.
        if style := token.attrs.pop("style", None):
            token.attrSet("class", str(style).rpartition(":")[2])
        # h1 and h2 are headings of the page.
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + 2, 6)}"
        if token.children:
            token.children = _with_links(token.children)
    html = str(parser.renderer.render(tokens, parser.options, {}))
    return SafeString(html)  # The renderer has escaped all text.


def _with_links(children: Sequence[Token]) -> list[Token]:
    """Return the inline tokens with attributes of links, and with a link for each bare URL outside of links."""
    linked: list[Token] = []
    depth = 0
    for token in children:
        depth += token.nesting if token.type.startswith("link_") else 0
        if token.type == "link_open":
            _set_attributes(token, str(token.attrs["href"]))
        if token.type == "text" and not depth:
            linked += _split_urls(token.content)
        else:
            linked.append(token)
    return linked


def _split_urls(text: str) -> list[Token]:
    tokens, end = [], 0
    for match in BARE_URL.finditer(text):
        url = URL_END.sub("", match[0])
        opening = Token("link_open", "a", 1)
        _set_attributes(opening, url)
        tokens += [_text(text[end : match.start()]), opening, _text(url), Token("link_close", "a", -1)]
        end = match.start() + len(url)
    return [*tokens, _text(text[end:])]


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _set_attributes(token: Token, url: str) -> None:
    # The title shows the address, because the text of a link may mislead.
    token.attrs = {"href": url, "title": url, "rel": "noreferrer noopener nofollow", "target": "_blank"}


def _code(token: Token) -> str:
    # A scrolling element must accept the keyboard focus.
    match = re.match(r"[\w+#.-]+", token.info.strip(), re.ASCII)
    language = f' data-language="{escapeHtml(match[0])}"' if match else ""
    return f'<pre dir="ltr"{language}><code tabindex="0">{escapeHtml(token.content)}</code></pre>\n'
