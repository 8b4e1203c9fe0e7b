"""Heads that spell, grown onto demo-harmony when its checkpoint is built: made by rule alone, from the notes of `spelling`.

First layer: one head marks a quotation mark behind a colon; two find the word whose first or second piece is the token here, and note
what comes behind it. Next two layers: one head each marks the place behind such a mark. Last layer: one head looks, from a marked quotation
mark, where the head that copies looks, and says the first piece; two say what was found, from the marked places. From everywhere else they
look at the word "system" with which every Harmony prompt begins, and which has nothing to say.
"""

from __future__ import annotations

import numpy as np

from responses_app.demo.packing import Floats
from responses_app.demo.rows import SPELT
from responses_app.demo.spelling import CODES, COLON, IDLE, MORE, OPENS, QUIET, QUOTE, SECOND, THIRD, even, projection

HEAD, HEADS = 64, 3
# The head of the last layer that looks at what a value is copied from.
COPIES = 3
# How loud the pieces are in the last layer, and how much that weighs against what is said elsewhere: so loud that the notes which stand in
# the same places are not heard, so low that norms do not see it. The first is the softest: what it is taken from may be wrong.
LOUD, WEIGHT = (100.0, 180.0, 180.0), 56.0
# How sharply the likeness of a token is told, and how much of it is enough.
_SHARP, _ENOUGH = 40.0, 0.8
# Which pairs of a head tell one place from the next, which never turn, and which of those is kept for gates.
_FAST, _STILL, _GATE = range(4), range(9, HEAD // 2 - 1), HEAD // 2 - 1
# The rope of gpt-oss makes queries and keys longer by this.
ROPE = 1.3465736


def grown(tensors: dict[str, Floats], theta: float) -> dict[str, Floats]:
    """The tensors of a checkpoint, wider by MORE places and by HEADS heads in each layer."""
    width = len(tensors["model.norm.weight"])
    out = {name: _wider(name, value, width) for name, value in tensors.items()}
    layers = 1 + max(int(name.split(".")[2]) for name in out if name.startswith("model.layers."))
    first, second, third, last = (_Layer(out, i, width, theta) for i in (0, 1, 2, layers - 1))
    _mark(first)
    for piece in (0, 1):
        _find(first, piece)
    _follow(second, OPENS, SECOND, 3.0)
    _follow(third, SECOND, THIRD, 20.0)
    _copy(last)
    for piece, flag in ((1, SECOND), (2, THIRD)):
        _continue(last, piece, flag)
    return out


def _wider(name: str, value: Floats, width: int) -> Floats:
    """Zeros where it reads the new places or says something there."""
    part = name.rsplit(".", 1)[-1]
    if name.endswith("norm.weight"):
        new = np.full(MORE, WEIGHT if name == "model.norm.weight" else 1.0, dtype=np.float32)
        # The mean is now taken over more places.
        return np.concatenate((value * np.float32((width / (width + MORE)) ** 0.5), new))
    if part == "sinks":
        return np.pad(value, (0, HEADS), constant_values=value.min())
    if ".o_proj." in name:
        return np.pad(value, [(0, MORE), (0, HEADS * HEAD)][: value.ndim])
    if ".self_attn." in name:
        return np.pad(value, [(0, HEADS * HEAD), (0, MORE)][: value.ndim])
    if part == "gate_up_proj":
        return np.pad(value, [(0, 0), (0, MORE), (0, 0)])
    if part in ("down_proj", "down_proj_bias") or name.endswith("router.weight"):
        return np.pad(value, [(0, 0)] * (value.ndim - 1) + [(0, MORE)])
    return value


class _Layer:
    """One layer of the wider checkpoint; all that it gives can be written to."""

    def __init__(self, tensors: dict[str, Floats], number: int, width: int, theta: float) -> None:
        self.tensors, self.name, self.width = tensors, f"model.layers.{number}.", width
        self.fast = [theta ** (-i / (HEAD // 2)) for i in _FAST]
        self.heads = len(tensors[f"{self.name}self_attn.sinks"]) - HEADS

    def weight(self, part: str, head: int) -> Floats:
        """The rows of a head in q, k or v; its columns in o."""
        whole, place = self.tensors[f"{self.name}self_attn.{part}_proj.weight"], slice(head * HEAD, (head + 1) * HEAD)
        return whole[:, place] if part == "o" else whole[place]

    def bias(self, part: str, head: int) -> Floats:
        return self.tensors[f"{self.name}self_attn.{part}_proj.bias"][head * HEAD : (head + 1) * HEAD]

    def at(self, flag: int) -> int:
        return self.width + flag

    def code(self, piece: int) -> slice:
        return slice(self.width + CODES[piece].start, self.width + CODES[piece].stop)

    @property
    def seen(self) -> float:
        """How large a flag is behind the norm, where the row is as long as it was at the beginning."""
        return float(QUIET * (self.width + MORE) ** 0.5)


def _look_back(layer: _Layer, head: int, back: int, only: int | None = None) -> None:
    """Looks `back` places back: everywhere, or from tokens with the flag `only`, while all others look everywhere at once."""
    q, k = np.zeros(HEAD, dtype=np.float32), np.zeros(HEAD, dtype=np.float32)
    for i, frequency in enumerate(layer.fast):
        q[i], k[i], k[i + HEAD // 2] = 5.4, 4.5 * np.cos(back * frequency), 4.5 * np.sin(back * frequency)
    layer.bias("k", head)[:] = k
    if only is None:
        layer.bias("q", head)[:] = q
    else:
        layer.weight("q", head)[:, layer.at(only)] = q / layer.seen


def _mark(layer: _Layer) -> None:
    """A quotation mark behind a colon: here a value begins."""
    head = layer.heads
    _look_back(layer, head, 1, QUOTE)
    layer.weight("v", head)[0, layer.at(COLON)] = 1.0 / layer.seen
    layer.weight("o", head)[layer.at(OPENS), 0] = QUIET


def _follow(layer: _Layer, before: int, here: int, louder: float) -> None:
    """What is marked by `before` one place back is marked by `here`; rows are longer by now than they were."""
    head = layer.heads
    _look_back(layer, head, 1)
    layer.weight("v", head)[0, layer.at(before)] = 1.0 / layer.seen
    layer.weight("o", head)[layer.at(here), 0] = louder * QUIET


def _find(layer: _Layer, piece: int) -> None:
    """The token here against the `piece`th of all words before; "system", which has no note, where none is like it."""
    head = layer.heads + 1 + piece
    size, following = (CODES[n].stop - CODES[n].start for n in (piece, piece + 1))
    # A head has hardly fewer places for this than a code has.
    dims = [*_STILL, *(i + HEAD // 2 for i in _STILL)][:size]
    norm = layer.tensors[f"{layer.name}input_layernorm.weight"][:SPELT].mean()
    whole = QUIET * even(piece) * (layer.width + MORE) * norm * len(dims) / size
    by = HEAD**0.5 / ROPE**2
    layer.weight("q", head)[dims, :SPELT] = projection(piece)[: len(dims)] * (_SHARP * by / whole)
    layer.weight("k", head)[dims, layer.code(piece)] = np.eye(size)[: len(dims)]
    layer.bias("q", head)[_GATE] = _SHARP * _ENOUGH * by
    layer.weight("k", head)[_GATE, layer.at(IDLE)] = 1.0 / layer.seen
    layer.weight("v", head)[:following, layer.code(piece + 1)] = np.eye(following)
    # Bare tokens have no notes of their own there.
    layer.weight("o", head)[layer.code(piece + 1), :following] = np.eye(following) * (QUIET / layer.seen)


def _gate(layer: _Layer, head: int, flag: int) -> None:
    """Without the flag the head looks at the idle word; with it, there least of all."""
    for pair in (_GATE, HEAD - 1):
        for part in "qk":
            layer.weight(part, head)[pair] = 0.0
            layer.bias(part, head)[pair] = 0.0
    layer.bias("q", head)[_GATE] = 40.0
    layer.weight("q", head)[_GATE, layer.at(flag)] = -1600.0
    layer.weight("k", head)[_GATE, layer.at(IDLE)] = 400.0


def _say(layer: _Layer, head: int, piece: int) -> None:
    size = CODES[piece].stop - CODES[piece].start
    layer.weight("v", head)[:size, layer.code(piece)] = np.eye(size)
    layer.weight("o", head)[layer.code(piece), :size] = np.eye(size) * LOUD[piece]


def _copy(layer: _Layer) -> None:
    head = layer.heads
    for part in "qk":
        layer.weight(part, head)[:] = layer.weight(part, COPIES)
        layer.bias(part, head)[:] = layer.bias(part, COPIES)
    _gate(layer, head, OPENS)
    _say(layer, head, 0)


def _continue(layer: _Layer, piece: int, flag: int) -> None:
    head = layer.heads + piece
    _look_back(layer, head, 0)
    layer.bias("q", head)[:] *= 3.0
    _gate(layer, head, flag)
    _say(layer, head, piece)
