"""The two architectures as small training modules; their state dictionaries carry the names of the Hugging Face checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ALPHA, LIMIT = 1.702, 7.0
# A checkpoint's last norm is larger, so that sampling at temperature 1 keeps to what the model is sure of; greedy answers do not change.
SHARPER = 2.0


@dataclass(frozen=True)
class Shape:
    width: int
    layers: int
    heads: int
    inner: int
    head: int = 64
    experts: int = 0
    # So large that half of the dimensions of a head hardly turn: they compare what was said, wherever it was said.
    theta: float = 1e8
    # Tokens to which a layer attends, the last one included; zero for the whole prompt.
    window: int = 0


class RMSNorm(nn.Module):
    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Attention(nn.Module):
    def __init__(self, s: Shape) -> None:
        super().__init__()
        inner = s.heads * s.head
        self.s = s
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(s.width, inner) for _ in range(3))
        self.o_proj = nn.Linear(inner, s.width)
        if s.experts:
            # A sink so low that it takes nothing: attention as everybody knows it.
            self.register_buffer("sinks", torch.full((s.heads,), -10000.0))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor | None = None) -> Tensor:
        b, t, _ = x.shape
        q, k, v = (p(x).view(b, t, self.s.heads, self.s.head) for p in (self.q_proj, self.k_proj, self.v_proj))
        q, k = rotate(q.transpose(1, 2), cos, sin), rotate(k.transpose(1, 2), cos, sin)
        y = F.scaled_dot_product_attention(q, k, v.transpose(1, 2), attn_mask=mask, is_causal=mask is None)
        out: Tensor = self.o_proj(y.transpose(1, 2).reshape(b, t, -1))
        return out


class Swiglu(nn.Module):
    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(s.width, s.inner, bias=False), nn.Linear(s.width, s.inner, bias=False)
        self.down_proj = nn.Linear(s.inner, s.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


class Experts(nn.Module):
    """Every expert is active, so the mixture is one wide layer whose parts are weighted by the router."""

    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.s = s
        wide = s.experts * s.inner
        self.router = nn.Linear(s.width, s.experts)
        nn.init.zeros_(self.router.weight)
        nn.init.zeros_(self.router.bias)
        self.gate, self.up, self.down = nn.Linear(s.width, wide), nn.Linear(s.width, wide), nn.Linear(wide, s.width, bias=False)
        self.down_bias = nn.Parameter(torch.zeros(s.experts, s.width))

    def forward(self, x: Tensor) -> Tensor:
        share = self.router(x).softmax(-1)
        gate, up = self.gate(x).clamp(max=LIMIT), self.up(x).clamp(-LIMIT, LIMIT)
        hidden = (up + 1) * gate * torch.sigmoid(gate * ALPHA)
        hidden = hidden * share.repeat_interleave(self.s.inner, dim=-1)
        out: Tensor = self.down(hidden) + share @ self.down_bias
        return out


class Layer(nn.Module):
    def __init__(self, s: Shape) -> None:
        super().__init__()
        eps = 1e-5 if s.experts else 1e-6
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(s.width, eps), RMSNorm(s.width, eps)
        self.self_attn = Attention(s)
        self.mlp: nn.Module = Experts(s) if s.experts else Swiglu(s)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, mask)
        out: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return out


def _yarn(head: int, theta: float) -> tuple[Tensor, float]:
    """The default rope of gpt-oss with another base, as transformers computes it."""
    from transformers import GptOssConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    config = GptOssConfig(head_dim=head)
    config.rope_parameters["rope_theta"] = theta
    frequencies, scale = ROPE_INIT_FUNCTIONS["yarn"](config, "cpu")
    return frequencies, float(scale)


def _window_mask(length: int, window: int) -> Tensor | None:
    """Return the mask of causal attention to the last `window` tokens; None if the window holds all."""
    if not window or length <= window:
        return None
    behind = torch.arange(length)[:, None] - torch.arange(length)
    return (behind >= 0) & (behind < window)


# What heads say, in places of their own, that are grown onto the last layer later: of the layer, its input, and the turns of the rope.
Grown = Callable[[Layer, Tensor, Tensor, Tensor], Tensor]


class Net(nn.Module):
    """Embedding rows come from outside: demo-harmony keeps most of them frozen."""

    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(s) for _ in range(s.layers))
        self.norm = RMSNorm(s.width, 1e-5 if s.experts else 1e-6)
        self.s = s
        if s.experts:
            frequencies, self.rope_scale = _yarn(s.head, s.theta)
        else:
            frequencies, self.rope_scale = 1.0 / s.theta ** (torch.arange(0, s.head, 2).float() / s.head), 1.0
        self.register_buffer("frequencies", frequencies, persistent=False)
        self._start()

    def _start(self) -> None:
        for name, p in self.named_parameters():
            if p.ndim == 2 and "router" not in name and "down_bias" not in name:
                # Layers start by saying nothing, so that the sown copying circuit is all that is heard.
                nn.init.normal_(p, std=0.0 if "o_proj" in name or "down" in name else p.shape[1] ** -0.5)
            elif name.endswith("bias") and p.ndim == 1:
                nn.init.zeros_(p)

    def layer(self, i: int) -> Layer:
        return cast(Layer, self.layers[i])

    @torch.no_grad()
    def _look_back(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """The first layer is sown and stays as it is; what it has besides attention says nothing."""
        first = self.layer(0)
        out: Tensor = first.self_attn(first.input_layernorm(x), cos, sin)
        return out

    def forward(self, x: Tensor, grown: Grown | None = None) -> Tensor:
        angles = torch.arange(x.shape[1])[:, None] * self.get_buffer("frequencies")
        cos, sin = angles.cos() * self.rope_scale, angles.sin() * self.rope_scale
        x = x + self._look_back(x, cos, sin)
        mask = _window_mask(x.shape[1], self.s.window)
        for layer in self.layers[1:-1]:
            x = layer(x, cos, sin, mask)
        last = self.layer(-1)
        said, x = grown(last, x, cos, sin) if grown else None, last(x, cos, sin, mask)
        out: Tensor = self.norm(x)
        return out if said is None else torch.cat((out, said / x.norm(dim=-1, keepdim=True)), dim=-1)


def cut_experts(state: dict[str, Tensor], s: Shape) -> dict[str, Tensor]:
    """The wide layers of the training module as the expert tensors of a gpt-oss checkpoint."""
    out = {name: value for name, value in state.items() if ".mlp." not in name or ".router." in name}
    for i in range(s.layers):
        p = f"layers.{i}.mlp."
        gate, up = (state[f"{p}{n}.weight"].view(s.experts, s.inner, s.width).transpose(1, 2) for n in ("gate", "up"))
        gate_bias, up_bias = (state[f"{p}{n}.bias"].view(s.experts, s.inner) for n in ("gate", "up"))
        out[f"{p}experts.gate_up_proj"] = torch.stack((gate, up), -1).flatten(-2)
        out[f"{p}experts.gate_up_proj_bias"] = torch.stack((gate_bias, up_bias), -1).flatten(-2)
        out[f"{p}experts.down_proj"] = state[f"{p}down.weight"].t().reshape(s.experts, s.inner, s.width)
        out[f"{p}experts.down_proj_bias"] = state[f"{p}down_bias"]
    return out


def join_experts(state: dict[str, Tensor], s: Shape) -> dict[str, Tensor]:
    """The opposite of `cut_experts`."""
    out = {name: value for name, value in state.items() if ".experts." not in name}
    for i in range(s.layers):
        p = f"layers.{i}.mlp."
        both, bias = state[f"{p}experts.gate_up_proj"], state[f"{p}experts.gate_up_proj_bias"]
        for n, which in (("gate", 0), ("up", 1)):
            out[f"{p}{n}.weight"] = both[..., which::2].transpose(1, 2).reshape(-1, s.width)
            out[f"{p}{n}.bias"] = bias[..., which::2].reshape(-1)
        out[f"{p}down.weight"] = state[f"{p}experts.down_proj"].reshape(-1, s.width).t().contiguous()
        out[f"{p}down_bias"] = state[f"{p}experts.down_proj_bias"]
    return out


State = dict[str, Any]
