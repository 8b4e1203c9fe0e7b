r"""Math in Markdown: `$x$` and `\(x\)` in a line, `$$…$$` and `\[…\]` alone or in a line.

The page has the TeX source, which scripts typeset. static/web/markdown/math.js has the same rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

# Longer formulas stay text.
MAX_CHARS: Final = 2000
MAX_LINES: Final = 100
# Prices are no math: no space inside of the dollar signs, no letter before the first one and no digit behind the second one.
INLINE: Final = re.compile(
    r"\$\$(?P<dollars>[^$]+)\$\$|\\\[(?P<brackets>.+?)\\\]|\\\((?P<parentheses>.+?)\\\)"
    r"|\$(?P<dollar>[^\s$`](?:[^$`\n]*[^\s$`\\])?)\$(?![0-9])",
    re.DOTALL,
)
BLOCK_ENDS: Final = {"$$": "$$", "\\[": "\\]"}


def add_math(parser: MarkdownIt) -> None:
    """Add the rules of math to `parser`, before the rule of escapes."""
    parser.inline.ruler.before("escape", "math", _inline)
    parser.block.ruler.before("fence", "math_block", _block, {"alt": ["paragraph", "blockquote", "list"]})
    set_rendering(parser, "math", _rendered)
    set_rendering(parser, "math_block", _rendered_block)


def _inline(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] not in "$\\":
        return False
    if state.src[state.pos] == "$" and re.match(r"\w", state.src[state.pos - 1 : state.pos], re.ASCII):
        return False
    match = INLINE.match(state.src, state.pos, min(state.posMax, state.pos + MAX_CHARS))
    if match is None:
        return False
    if not silent:
        token = state.push("math", "", 0)
        token.content = next(part for part in match.groups() if part is not None).strip()
        token.info = "display" if match["dollars"] or match["brackets"] else ""
    state.pos = match.end()
    return True


def _block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    first = _line(state, start)
    closing = BLOCK_ENDS.get(first[:2])
    if closing is None or state.is_code_block(start):
        return False
    content = first[2:]
    line = start
    # A formula has no empty line.
    while not content.rstrip().endswith(closing):
        line += 1
        if line >= min(end, start + MAX_LINES) or state.isEmpty(line) or state.sCount[line] < state.blkIndent:
            return False
        content += "\n" + _line(state, line)
    formula = content.rstrip()[: -len(closing)]
    if closing in formula or len(formula) > MAX_CHARS:
        return False
    if not silent:
        token = state.push("math_block", "", 0)
        token.content = formula.strip()
        token.map = [start, line + 1]
        token.block = True
        state.line = line + 1
    return True


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def set_rendering(parser: MarkdownIt, name: str, render: Callable[[Token], str]) -> None:
    """Render each token of the type `name` with `render`, whose HTML must be escaped."""

    def rule(_: RendererHTML, tokens: Sequence[Token], at: int, *_options: object) -> str:
        return render(tokens[at])

    parser.add_render_rule(name, rule)


def _rendered(token: Token) -> str:
    names = "math display" if token.info else "math"
    return f'<span class="{names}">{escapeHtml(token.content)}</span>'


def _rendered_block(token: Token) -> str:
    return f'<div class="math display" tabindex="0">{escapeHtml(token.content)}</div>\n'
