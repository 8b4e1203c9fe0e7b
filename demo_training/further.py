"""Make a training checkpoint of the committed weights: `python -m demo_training.further demo-chat --scratch DIR`."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from safetensors.numpy import load_file
from torch import Tensor

from demo_training.network.nets import SHARPER, join_experts
from demo_training.train import SHAPES, Training
from responses_app.demo.build import FOLDERS, WEIGHTS
from responses_app.demo.packing import unpack

# Steps after which a training has next to no texts to copy and no warm-up.
SETTLED = 1000


def committed(name: str) -> dict[str, Tensor]:
    """The opposite of `export.checkpoint_names`: committed tensors under the names of the training module."""
    tensors = unpack(load_file(FOLDERS[name] / WEIGHTS))
    state = {k.removeprefix("model."): torch.from_numpy(v) for k, v in tensors.items()}
    rows = state.pop("embed_tokens.weight")
    state["norm.weight"] = state["norm.weight"] / SHARPER
    if SHAPES[name].experts:
        state = join_experts(state, SHAPES[name])
    return {f"net.{k}": v for k, v in state.items()} | {"rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=sorted(SHAPES))
    parser.add_argument("--scratch", type=Path, default=Path("."))
    chosen = parser.parse_args()
    training = Training(chosen.name, chosen.scratch)
    training.start_from(committed(chosen.name))
    training.step = SETTLED
    training.save()


if __name__ == "__main__":
    main()
