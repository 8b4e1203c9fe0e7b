"""Start the first two layers with the circuit for copying, which a small model otherwise needs half of its training to find.

Layer 0: two heads look at the token before. Layer 1: three heads look for the place whose token before is the token here,
and say what stands there.
"""

from __future__ import annotations

import torch
from torch import Tensor

from responses_app.demo.nets import Attention, Net, Shape

_FAST = (0, 1, 2)
BEFORE, SEEKING = 2, 3


def _head(h: int, s: Shape) -> slice:
    return slice(h * s.head, (h + 1) * s.head)


def _constant(normed: Tensor) -> Tensor:
    """The direction in which the rows of all tokens are most nearly the same."""
    gram = normed.t() @ normed + 0.01 * len(normed) * torch.eye(normed.shape[1])
    solved: Tensor = torch.linalg.solve(gram, normed.sum(0))
    return solved


def _directions(r: torch.Generator, width: int, count: int) -> Tensor:
    columns: Tensor = torch.linalg.qr(torch.randn(width, count, generator=r))[0]
    return columns.t()


@torch.no_grad()
def sow(net: Net, rows: Tensor, s: Shape, loud: float = 2.0) -> None:
    r = torch.Generator().manual_seed(11)
    content = [_directions(r, s.width, s.head) for _ in range(BEFORE)]
    echoes = [_directions(r, s.width, s.head) for _ in range(BEFORE)]
    first, second = net.layer(0), net.layer(1)
    normed = first.input_layernorm(rows)
    _look_back(first.self_attn, s, net.get_buffer("frequencies"), _constant(normed))
    size = rows.norm(dim=-1).mean() / normed.norm(dim=-1).mean()
    for h in range(BEFORE):
        first.self_attn.v_proj.weight[_head(h, s)] = content[h]
        first.self_attn.o_proj.weight[:, _head(h, s)] = echoes[h].t() * size * 1.2
    _seek(second.self_attn, s, content, echoes, net.get_buffer("frequencies"))
    every = _directions(r, s.width, SEEKING * s.head)
    for h in range(SEEKING):
        part = every[h * s.head : (h + 1) * s.head]
        second.self_attn.v_proj.weight[_head(h, s)] = part
        second.self_attn.o_proj.weight[:, _head(h, s)] = part.t() * size * loud


def _look_back(a: Attention, s: Shape, frequencies: Tensor, constant: Tensor) -> None:
    """Queries and keys that are the same for all tokens: what is left is the distance, and the rotation makes it one."""
    half = s.head // 2
    q, k = torch.zeros(s.head), torch.zeros(s.head)
    for i in _FAST:
        q[i], k[i], k[i + half] = 1.0, frequencies[i].cos(), frequencies[i].sin()
    for h in range(BEFORE):
        place = _head(h, s)
        if s.experts:
            a.q_proj.weight[place], a.k_proj.weight[place] = 0.0, 0.0
            a.q_proj.bias[place], a.k_proj.bias[place] = q * 4.5, k * 4.5
        else:
            a.q_proj.weight[place], a.k_proj.weight[place] = torch.outer(q, constant), torch.outer(k, constant)
            for i in _FAST:
                a.q_norm.weight[[i, i + half]] = 1.8
                a.k_norm.weight[[i, i + half]] = 1.8


def _seek(a: Attention, s: Shape, content: list[Tensor], echoes: list[Tensor], frequencies: Tensor) -> None:
    """The token here against the token before there, in the slow dimensions that distance hardly turns."""
    half = s.head // 2
    slow = [i for i in range(half) if frequencies[i] < 0.012]
    dims = slow + [i + half for i in slow]
    for h in range(SEEKING):
        place, which = _head(h, s), h % BEFORE
        for p, source, power in ((a.q_proj, content[which], 1.0), (a.k_proj, echoes[which], 1.4)):
            block = torch.zeros(s.head, s.width)
            start = (h // BEFORE) * 8
            block[dims] = source.roll(-start, 0)[: len(dims)] * power * (1.6 if s.experts else 1.0)
            p.weight[place] = block
            if s.experts:
                p.bias[place] = 0.0
    if not s.experts:
        a.q_norm.weight[dims], a.k_norm.weight[dims] = 2.0, 2.0


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
    shared = [second.input_layernorm.weight] + ([] if s.experts else [a.q_norm.weight, a.k_norm.weight])
    for weight in shared:
        _still(weight, slice(None))


def _still(p: Tensor | None, part: slice) -> None:
    if p is not None and p.grad is not None:
        p.grad[part] = 0.0
