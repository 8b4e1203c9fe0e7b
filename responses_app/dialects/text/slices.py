"""Texts cut where every usual pre-tokenizer has a boundary, so that the tokens of the slices are those of the whole.

The patterns of GPT-2, cl100k, o200k and their relatives have no match in which a letter or a digit is followed by white space or by
punctuation (but for an apostrophe), and none that looks behind its start. So a cut at such a place changes no other match.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Some ten milliseconds of tokenizing.
SLICE = 1 << 16
# White space and the punctuation of East Asia. None of them composes with the character before it (Unicode NFC).
CUT = re.compile(r"(?<=[^\W_])(?=[ \n。，、])")
# Also before the punctuation of ASCII, where no special token can be cut.
CUT_ANYWHERE = re.compile(r"(?<=[^\W_])(?=[ \n。，、.,:;()\[\]{}<>\"=+*/&|%#-])")


def slices(text: str, cut: re.Pattern[str] | None = CUT, size: int = SLICE) -> Iterator[str]:
    """The text in pieces of about `size` characters; a piece without a safe cut is longer. Without `cut` it stays whole."""
    start = 0
    while cut is not None and len(text) - start > size:
        found = cut.search(text, start + size)
        if found is None:
            break
        yield text[start : found.start()]
        start = found.start()
    if start < len(text):
        yield text[start:] if start else text
