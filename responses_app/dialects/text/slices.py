"""Safe slicing: texts are cut at boundaries of all usual pre-tokenizers, which does not change the tokens.

No pattern of GPT-2, cl100k, o200k and their relatives matches across a letter or digit followed by white space or by
punctuation other than an apostrophe. None of them looks behind its start. So a cut at such a position changes no other match.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Tokenizing a slice takes some ten milliseconds.
SLICE = 1 << 16
# White space and East Asian punctuation. None of these characters composes with the character before it (Unicode NFC).
CUT = re.compile(r"(?<=[^\W_])(?=[ \n。，、])")
# Also before ASCII punctuation; only for text without special tokens.
CUT_ANYWHERE = re.compile(r"(?<=[^\W_])(?=[ \n。，、.,:;()\[\]{}<>\"=+*/&|%#-])")


def slices(text: str, cut: re.Pattern[str] | None = CUT, size: int = SLICE) -> Iterator[str]:
    """Split the text into slices of about `size` characters; longer without a safe cut. No split without `cut`."""
    start = 0
    while cut is not None and len(text) - start > size:
        match = cut.search(text, start + size)
        if match is None:
            break
        yield text[start : match.start()]
        start = match.start()
    if start < len(text):
        yield text[start:] if start else text
