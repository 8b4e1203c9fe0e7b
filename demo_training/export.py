"""Write a training checkpoint as the files to commit: `python -m demo_training.export demo-chat --scratch DIR`."""

# A command line prints.
# ruff: noqa: T201
from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from torch import Tensor

from demo_training.network.nets import SHARPER, cut_experts
from demo_training.train import SHAPES
from responses_app.demo.build import FOLDERS
from responses_app.demo.packing import Floats, pack


def checkpoint_names(name: str, state: dict[str, Tensor]) -> dict[str, Floats]:
    net = {k.removeprefix("net."): v for k, v in state.items() if k.startswith("net.")}
    net["norm.weight"] = net["norm.weight"] * SHARPER
    if SHAPES[name].experts:
        net = cut_experts(net, SHAPES[name])
    net["embed_tokens.weight"] = state["rows"]
    return {f"model.{k}": np.ascontiguousarray(v.float().numpy()) for k, v in net.items()}


def export(name: str, scratch: Path, levels: int, averaged: bool) -> Path:
    saved = torch.load(scratch / f"{name}.pt")
    path = FOLDERS[name] / "weights.safetensors"
    save_file(pack(checkpoint_names(name, saved["mean" if averaged else "model"]), levels), path)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=sorted(SHAPES))
    parser.add_argument("--scratch", type=Path, default=Path("."))
    parser.add_argument("--levels", type=int, default=127)
    parser.add_argument("--averaged", action="store_true", help="the running mean instead of the last weights")
    chosen = parser.parse_args()
    print(export(chosen.name, chosen.scratch, chosen.levels, chosen.averaged))


if __name__ == "__main__":
    main()
