"""Mutations of a model's output: pieces deleted, repeated, swapped, and fragments inserted."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from hypothesis import strategies as st

from tests.support.hypothesis_profile import examples

Change: TypeAlias = tuple[Literal["delete", "repeat", "swap", "insert", "word"], int, int]

# Number of mutations of each syntax in a test; 500 in the environment for a long run.
EXAMPLES: Final = int(os.environ.get("MUTATIONS", "25"))
# Number of mutations of a further format of a syntax.
FEWER: Final = min(EXAMPLES, examples(EXAMPLES // 2))
_FRAGMENTS: Final = (
    "{", "}", "[", "]", '"', "'", "\\", ":", ",", "(", ")", "=", "<", ">", "</", "\n", " ", "null", "call:", "é🦑", "\x00", "\ufffd",
    '{"name": "clock"', '{"name": 7}', '{"arguments": {}}', '"arguments": ', "clock(", "analysis", "json",
)  # fmt: skip
WORD: Final = re.compile(r"Word\d+x")
"""Inserted words, which the output of a parser must contain."""

changes: Final = st.lists(
    st.tuples(
        st.sampled_from(("delete", "repeat", "swap", "insert", "insert", "word", "word")),
        st.integers(0, 10_000),
        st.integers(0, 10_000),
    ),
    min_size=1,
    max_size=5,
)


def mutate(text: str, markers: Sequence[str], made: Sequence[Change]) -> list[str]:
    """Return the pieces of `text`, which are markers, words and single characters, with the changes `made`."""
    fragments = (*markers, *_FRAGMENTS)
    known = "".join(f"{re.escape(marker)}|" for marker in sorted(markers, key=len, reverse=True))
    pieces = re.findall(rf"{known}\w+|\s+|.", text, re.DOTALL)
    for number, (kind, first, second) in enumerate(made):
        at = first % (len(pieces) + 1)
        if kind == "insert":
            pieces.insert(at, fragments[second % len(fragments)])
        elif kind == "word":
            pieces.insert(at, f" Word{number}x ")
        elif at < len(pieces):
            _change(pieces, kind, at, second % len(pieces))
    return pieces


def _change(pieces: list[str], kind: str, at: int, other: int) -> None:
    if kind == "delete":
        del pieces[at]
    elif kind == "repeat":
        pieces.insert(at, pieces[at])
    else:
        pieces[at], pieces[other] = pieces[other], pieces[at]
