"""What the heads of `growing` will say in the checkpoint, computed while the model that they are grown onto still learns."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from demo_training.network.nets import SHARPER, Layer, rotate
from responses_app.demo import growing, spelling
from responses_app.demo.rows import SPELT

Table = Callable[[Tensor], Tensor]


@dataclass
class Spelt:
    """For one batch: where values begin, the notes of every token, and what is to be said at the two places behind."""

    opens: Tensor
    notes: Tensor
    found: Tensor

    def __call__(self, layer: Layer, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """What the heads of the last layer say, whose input is `x`: codes, still to be divided by how long the row is behind that layer."""
        a = layer.self_attn
        every = math.sqrt(a.s.width + spelling.MORE)
        length = x.norm(dim=-1, keepdim=True) / every
        q, k = (rotate(one, cos, sin) for one in self._sought(layer, x))
        seen = F.scaled_dot_product_attention(q[:, None], k[:, None], (self.notes / length)[:, None], is_causal=True)[:, 0]
        weight = float(growing.WEIGHT / SHARPER * every)
        return torch.cat((growing.LOUD[0] * self.opens * seen, self.found / length), dim=-1) * weight

    def _sought(self, layer: Layer, x: Tensor) -> tuple[Tensor, Tensor]:
        a, normed = layer.self_attn, layer.input_layernorm(x)
        place = slice(growing.COPIES * a.s.head, (growing.COPIES + 1) * a.s.head)
        # The last pair is a gate in the checkpoint.
        free = torch.ones(a.s.head)
        free[[a.s.head // 2 - 1, a.s.head - 1]] = 0.0
        q, k = (F.linear(normed, p.weight[place], p.bias[place]) * free for p in (a.q_proj, a.k_proj))
        return q, k


class Speller:
    def __init__(self, spellings: list[bytes]) -> None:
        self.pieces = torch.from_numpy(spelling.pieces_of(spellings))
        self.quotes, self.colons = (
            torch.tensor([spellings.index(one) for one in some]) for some in (spelling.OPENING, spelling.BEFORE)
        )
        self.said = [torch.isin(torch.arange(len(spellings)), which) for which in self.pieces.t()]
        self.codes = [torch.from_numpy(spelling.projection(piece)) for piece in range(len(spelling.CODES))]

    def of(self, ids: Tensor, table: Table) -> Spelt:
        """`ids`: batch and place; `table` gives the rows of tokens as they are now."""
        opens = torch.isin(ids, self.quotes) & torch.isin(_back(ids), self.colons)
        # Notes about first pieces are as loud as the rows they stand behind.
        notes = self._notes(ids, 0, table) * table(ids).norm(dim=-1, keepdim=True)
        found, here = [], opens
        for piece in range(1, len(self.codes)):
            here = _back(here)
            found.append(growing.LOUD[piece] * here[..., None] * self._found(ids, piece, table))
        return Spelt(opens[..., None], notes, torch.cat(found, dim=-1))

    def answering(self, ids: Tensor, table: Table) -> Tensor:
        """The codes of these tokens: what makes each of them answer to what is said."""
        rows = table(ids)[..., :SPELT]
        both = zip(self.codes, self.said, strict=True)
        codes = [F.normalize(rows @ code.t(), dim=-1) * said[ids][..., None] for code, said in both]
        return torch.cat(codes, dim=-1)

    def _notes(self, ids: Tensor, piece: int, table: Table) -> Tensor:
        which = self.pieces[ids][..., piece]
        rows = table(which.clamp(min=0))
        code = rows[..., :SPELT] @ self.codes[piece].t()
        notes: Tensor = spelling.QUIET * spelling.even(piece) * rows.norm(dim=-1, keepdim=True) * code
        return notes / code.square().sum(-1, keepdim=True) * (which >= 0)[..., None]

    def _found(self, ids: Tensor, piece: int, table: Table) -> Tensor:
        """The notes of the words before whose piece before this one is the token here."""
        same = (self.pieces[ids][..., piece - 1][:, None, :] == ids[:, :, None]).float().tril()
        return same / same.sum(-1, keepdim=True).clamp(min=1.0) @ self._notes(ids, piece, table)


def _back(x: Tensor) -> Tensor:
    """Every place has what was one before."""
    return F.pad(x, (1, 0))[:, :-1]
