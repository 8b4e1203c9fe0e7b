"""Start the first two layers with the circuit for copying, which a small model otherwise needs half of its training to find.

Layer 0: one head looks at the token before, one at the token before that; each writes down what it saw, in places that the rows of the
tokens leave free. Layer 1: three heads look for the place whose two tokens before are the token here and the token before it, and say
what stands there. With one token instead of two, "Ljubljana" goes round in circles.
"""

from __future__ import annotations

import torch
from torch import Tensor

from demo_training.network.nets import Attention, Net, Shape
from responses_app.demo.rows import SPELT

BACK, SEEKING, NOTE = (1, 2), 3, 32
# Which frequencies tell one place from the next, and which hardly turn over a whole conversation.
_FAST, _STILL = 4, 0.006
_SHARP = 1.6
# What queries and keys of those that look back are made of.
_QUERY, _KEY = 5.4, 4.5


def _head(h: int, s: Shape) -> slice:
    return slice(h * s.head, (h + 1) * s.head)


def _note(back: int) -> slice:
    """The places in which the token `back` before is written down."""
    start = SPELT + NOTE * BACK.index(back)
    return slice(start, start + NOTE)


def _directions(r: torch.Generator, width: int, count: int) -> Tensor:
    columns: Tensor = torch.linalg.qr(torch.randn(width, count, generator=r))[0]
    return columns.t()


@torch.no_grad()
def sow(net: Net, rows: Tensor, s: Shape, loud: float = 2.0) -> None:
    """Needs a width of SPELT places for the rows and NOTE more for each token that is looked back at."""
    r = torch.Generator().manual_seed(11)
    first, second = net.layer(0), net.layer(1)
    normed = first.input_layernorm(rows)
    size = rows.norm(dim=-1).mean() / normed.norm(dim=-1).mean()
    content = torch.zeros(NOTE, s.width)
    content[:, :SPELT] = _directions(r, SPELT, NOTE)
    for h, back in enumerate(BACK):
        _look_back(first.self_attn, s, h, back, net.get_buffer("frequencies"))
        place = range(h * s.head, h * s.head + NOTE)
        first.self_attn.v_proj.weight[_head(h, s)] = 0.0
        first.self_attn.v_proj.weight[place] = content
        first.self_attn.o_proj.weight[_note(back), place] = torch.eye(NOTE) * size
    _seek(second.self_attn, s, r, content, net.get_buffer("frequencies"))
    every = torch.zeros(SEEKING * s.head, s.width)
    every[:, :SPELT] = _directions(r, SPELT, SEEKING * s.head)
    for h in range(SEEKING):
        part = every[_head(h, s)]
        second.self_attn.v_proj.weight[_head(h, s)] = part
        second.self_attn.o_proj.weight[:, _head(h, s)] = part.t() * size * loud


def _look_back(a: Attention, s: Shape, h: int, back: int, frequencies: Tensor) -> None:
    """Queries and keys that are the same for all tokens: what is left is the distance, and the rotation makes it `back`."""
    half, place = s.head // 2, _head(h, s)
    q, k = torch.zeros(s.head), torch.zeros(s.head)
    for i in range(_FAST):
        q[i], k[i], k[i + half] = 1.0, (back * frequencies[i]).cos(), (back * frequencies[i]).sin()
    a.q_proj.weight[place], a.k_proj.weight[place] = 0.0, 0.0
    a.q_proj.bias[place], a.k_proj.bias[place] = q * _QUERY, k * _KEY


def _seek(a: Attention, s: Shape, r: torch.Generator, content: Tensor, frequencies: Tensor) -> None:
    """The two last tokens here against the two tokens before there, in dimensions that distance hardly turns."""
    half = s.head // 2
    still = [i for i in range(half) if frequencies[i] < _STILL]
    last, older = ([*half_of, *(i + half for i in half_of)] for half_of in (still[::2], still[1::2]))
    noted = {back: torch.eye(s.width)[_note(back)] for back in BACK}
    for h in range(SEEKING):
        q, k = torch.zeros(s.head, s.width), torch.zeros(s.head, s.width)
        for dims, here, there in ((last, content, noted[1]), (older, noted[1], noted[2])):
            mixed = _directions(r, NOTE, NOTE)[: len(dims)]
            q[dims[: len(mixed)]], k[dims[: len(mixed)]] = mixed @ here, mixed @ there
        a.q_proj.weight[_head(h, s)], a.k_proj.weight[_head(h, s)] = q * _SHARP, k * _SHARP


@torch.no_grad()
def spare(net: Net, s: Shape) -> None:
    """Takes the gradient from what was sown in the second layer; the first one does nothing but look back and never learns.

    Without this the first two hundred steps, in which a model learns how often each token comes, wash the circuit away; a first layer
    set free after a third of the training did the same (copied tokens fell from 72% to 25%).
    """
    second = net.layer(1)
    a, sown = second.self_attn, slice(0, SEEKING * s.head)
    for p in (a.q_proj, a.k_proj, a.v_proj):
        _still(p.weight, sown)
        _still(p.bias, sown)
    if a.o_proj.weight.grad is not None:
        a.o_proj.weight.grad[:, sown] = 0.0
    _still(second.input_layernorm.weight, slice(None))


def _still(p: Tensor | None, part: slice) -> None:
    if p is not None and p.grad is not None:
        p.grad[part] = 0.0
