"""Notes behind the rows of demo-harmony: with which tokens a word is spelt without its blank.

In gpt-oss's vocabulary " Neptune" is one token and "Neptune" two, and 48,000 words are like that. A call copies a word from the question to
behind a quotation mark, where the blank must not be, and a model of this size learns to look at the right word long before it learns how
every word is spelt. So every token that begins with a blank carries notes, in places of their own, that `growing` adds the heads for.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from responses_app.demo import o200k
from responses_app.demo.packing import Floats
from responses_app.demo.rows import SPELT, signs

Ints = npt.NDArray[np.int64]

# The places of the notes, counted from behind the row: a code for each of up to three pieces, and flags.
MORE = 128
CODES = (slice(0, 48), slice(48, 88), slice(88, 123))
COLON, QUOTE, IDLE, OPENS, SECOND = range(123, 128)
# The flag of a third piece stands where no token of its own has one.
THIRD = COLON
# A value opens with a quotation mark behind a colon, and the name of a tool with a dot behind "functions".
BEFORE, OPENING = (b'":', b"functions"), (b' "', b' ["', b".")
_FLAGGED = (*((one, COLON) for one in BEFORE), *((one, QUOTE) for one in OPENING), (b"system", IDLE))
# How long a note is beside a row of length one: hardly seen by those that were there before.
QUIET = 0.1
_SEED = 21


def pieces_of(spellings: list[bytes]) -> Ints:
    """For each token up to three that spell it without its leading blank, filled up with -1; none where it takes more."""
    ids = {s: i for i, s in reversed(list(enumerate(spellings)))}
    out = np.full((len(spellings), len(CODES)), -1)
    for i, spelling in enumerate(spellings):
        bare = spelling[1:]
        if spelling[:1] == b" " and (bare[:1].isalnum() or bare[:1] >= b"\x80"):
            found = [ids[bare]] if bare in ids else _cut(bare)
            if len(found) <= len(CODES):
                out[i, : len(found)] = found
    return out


def _cut(bare: bytes) -> list[int]:
    try:
        ids: list[int] = o200k.encoding().encode(bare.decode(), disallowed_special=())
    except UnicodeDecodeError:
        return []
    return ids


def projection(piece: int) -> Floats:
    """What makes the code of the `piece`th out of a row: orthogonal directions."""
    size = CODES[piece].stop - CODES[piece].start
    return np.ascontiguousarray(np.linalg.qr(signs(_SEED + piece, SPELT, size))[0].T, dtype=np.float32)


def even(piece: int) -> float:
    """How long the code is, on the whole, of a row of length one."""
    return float(((CODES[piece].stop - CODES[piece].start) / SPELT) ** 0.5)


def lengths(rows: Floats) -> Floats:
    """Compute the Euclidean length of each row."""
    out: Floats = np.sqrt((rows * rows).sum(-1, keepdims=True))
    return out


def noted(rows: Floats, spellings: list[bytes], pieces: Ints) -> Floats:
    """For reading: the rows with their notes behind them."""
    notes, size = np.zeros((len(rows), MORE), dtype=np.float32), lengths(rows)
    for piece, which in enumerate(pieces.T):
        has = which >= 0
        said = rows[which[has]]
        code = said[:, :SPELT] @ projection(piece).T
        # The product of this with the code of that piece is the same for all, behind norms, however long the rows are.
        notes[has, CODES[piece]] = QUIET * size[has] * lengths(said) * code * even(piece) / (code * code).sum(-1, keepdims=True)
    for spelling, flag in _FLAGGED:
        token = spellings.index(spelling)
        notes[token, flag] = QUIET * size[token, 0]
    return np.concatenate((rows, notes), axis=1)


def answering(rows: Floats, pieces: Ints) -> Floats:
    """For writing: the rows, and behind those that are pieces of a word their codes, all of length one."""
    codes = np.zeros((len(rows), MORE), dtype=np.float32)
    for piece, which in enumerate(pieces.T):
        said = np.unique(which[which >= 0])
        code = rows[said, :SPELT] @ projection(piece).T
        codes[said, CODES[piece]] = code / lengths(code)
    return np.concatenate((rows, codes), axis=1)
