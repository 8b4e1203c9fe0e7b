"""Encoding of ordinary text to harmony token ids. Short texts are encoded by the harmony library, others by tiktoken.

The harmony library takes quadratic time for long runs of letters, and panics on long runs of white space. An encoder of tiktoken with
its vocabulary takes a third of a second and 60 MB, so it is made for the first text that needs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, cached_property

import tiktoken
from openai_harmony import HarmonyEncoding

from responses_app.dialects.harmony.tokens import FIRST_SPECIAL
from responses_app.dialects.text.budget import Budget
from responses_app.dialects.text.length import LowerBound
from responses_app.dialects.text.slices import CUT_ANYWHERE, slices

# Split pattern of o200k_harmony (tiktoken_ext/openai_public.py).
_LETTERS = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_PATTERN = "|".join(
    [
        rf"{_LETTERS}*{_LOWER}+{_ENDING}",
        rf"{_LETTERS}+{_LOWER}*{_ENDING}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
# White space except line ends, as a regular expression set.
SPACES = r"\t\x0b\x0c \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
# tiktoken's regular expressions overflow the stack on longer runs of white space without a line end after them. The pattern
# matches such a run as one piece, except its last character if a word follows that may include it.
_LONG_SPACE = re.compile(rf"(?<![{SPACES}])[{SPACES}]{{4096,}}+(?![\r\n])")
_NO_SPLIT = r"(?s).+"
# The harmony library takes quadratic time for longer runs.
MAX_RUN = 512
LONG_RUN = re.compile(rf"[^\r\n{SPACES}]{{{MAX_RUN},}}+|[{SPACES}]{{{MAX_RUN},}}+")
# Shorter texts are encoded by the harmony library, and without computing a bound.
_MAX_SHORT = 4096


class HarmonyText:
    """Encoder of ordinary text; special tokens are encoded as text."""

    def __init__(self, encoding: HarmonyEncoding) -> None:
        self._encoding = encoding

    @cached_property
    def _ranks(self) -> dict[bytes, int]:
        return _ranks(self._encoding)

    @cached_property
    def _split(self) -> tiktoken.Encoding:
        return tiktoken.Encoding("harmony", pat_str=_PATTERN, mergeable_ranks=self._ranks, special_tokens={})

    @cached_property
    def _unsplit(self) -> tiktoken.Encoding:
        return tiktoken.Encoding("harmony-whole", pat_str=_NO_SPLIT, mergeable_ranks=self._ranks, special_tokens={})

    @cached_property
    def _bound(self) -> LowerBound:
        return LowerBound(self._ranks)

    def encode(self, text: str, budget: Budget | None = None) -> list[int]:
        """Return the token ids. Raises TooLong and Stopped by the budget, UnicodeEncodeError for lone surrogates."""
        if len(text) < _MAX_SHORT:
            return _counted(self._encode_short(text), budget)
        if budget is not None:
            self._bound.count(text, budget.require)
        return [token for piece, split in _pieces(text) for token in _counted(self._encode_piece(split, piece), budget)]

    def _encode_short(self, text: str) -> list[int]:
        if LONG_RUN.search(text):
            return self._encode_piece(True, text)
        text.encode()  # The library replaces lone surrogates too.
        ids: list[int] = self._encoding.encode(text, disallowed_special=())
        return ids

    def _encode_piece(self, split: bool, piece: str) -> list[int]:
        piece.encode()  # tiktoken replaces lone surrogates.
        return (self._split if split else self._unsplit).encode_ordinary(piece)


def _counted(ids: list[int], budget: Budget | None) -> list[int]:
    """Return the token ids after their number was taken from the budget."""
    if budget is not None:
        budget.spend(len(ids))
    return ids


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Yield pieces of the text, with False for pieces not to be split by the pattern."""
    at = 0
    for run in _LONG_SPACE.finditer(text):
        end = run.end() - (run.end() < len(text))
        yield from ((piece, True) for piece in slices(text[at : run.start()], CUT_ANYWHERE))
        yield text[run.start() : end], False
        at = end
    yield from ((piece, True) for piece in slices(text[at:], CUT_ANYWHERE))


@cache
def harmony_text(encoding: HarmonyEncoding) -> HarmonyText:
    """Return the encoder of the encoding, of which each process has a single instance."""
    return HarmonyText(encoding)


def _ranks(encoding: HarmonyEncoding) -> dict[bytes, int]:
    """Return the ordinary tokens by bytes. Token ids equal ranks; special tokens have higher ids."""
    decode = encoding._inner.decode_bytes
    return {decode((token,)): token for token in range(FIRST_SPECIAL)}
