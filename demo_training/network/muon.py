"""The optimiser of the matrices."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Muon:
    """Orthogonalised momentum for the matrices: about twice as much learnt per step as with Adam."""

    def __init__(self, params: list[nn.Parameter], momentum: float = 0.95, decay: float = 0.01) -> None:
        self.params, self.momentum, self.decay = params, momentum, decay
        self.buffers = [torch.zeros_like(p) for p in params]

    @torch.no_grad()
    def step(self, rate: float) -> None:
        for p, m in zip(self.params, self.buffers, strict=True):
            if p.grad is None:
                continue
            m.lerp_(p.grad, 1 - self.momentum)
            update = _orthogonal(p.grad.lerp(m, self.momentum))
            # What is spared does not fade either.
            p.addcmul_(p, (p.grad != 0).float(), value=-rate * self.decay)
            p.add_(update, alpha=-rate * max(1.0, p.shape[0] / p.shape[1]) ** 0.5)


def _orthogonal(g: Tensor) -> Tensor:
    """Five Newton-Schulz steps towards the nearest orthogonal matrix."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g / (g.norm() + 1e-7)
    tall = x.shape[0] > x.shape[1]
    x = x.t() if tall else x
    for _ in range(5):
        s = x @ x.t()
        x = a * x + (b * s + c * s @ s) @ x
    out: Tensor = x.t() if tall else x
    return out
