"""Train a demo model from generated dialogues: `python -m demo_training.train demo-chat --steps 3000 --seed 1`."""

# A command line prints.
# ruff: noqa: T201
from __future__ import annotations

import argparse
import math
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from demo_training import chat, harmony
from demo_training.chat import Sample
from demo_training.dialogues import dialogues
from demo_training.drills import batches, drill_sample, echo_sample, maze_sample, padded
from demo_training.network.muon import Muon
from demo_training.network.nets import Net, Shape
from demo_training.network.sowing import sow, spare
from demo_training.network.vocabulary import Vocabulary, chat_vocabulary, harmony_vocabulary
from demo_training.renamed import renamed
from responses_app.demo import o200k
from responses_app.demo.build import FOLDERS
from responses_app.demo.rows import SPELT

SHAPES = {
    "demo-chat": Shape(width=256, layers=5, heads=6, inner=448, window=512),
    "demo-harmony": Shape(width=256, layers=5, heads=6, inner=224, experts=2, theta=150000.0**2),
}
NEGATIVES = 700
# At how many places of a batch those that come closest are sought, and how many at each.
RIVALRIES, RIVALS = 64, 12
LOUD = 8.0
# How many drills and mazes come with each dialogue.
DRILLS, MAZES = 0.08, 0.06
# The mix for the end: its share, and from when on.
FOCUS, FOCUS_FROM = 0.7, 0.55
# Faster rates wash the sown circuit away before it is of use.
RATE, ROW_RATE, SMALL_RATE = 0.007, 6e-4, 3e-3


@dataclass
class Competition:
    """Rows, whose they are, the index of each token id among them, and the log weight of each as a competitor."""

    rows: Tensor
    ids: Tensor
    index: Tensor
    weights: Tensor


class Model(nn.Module):
    def __init__(self, shape: Shape, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.net, self.speller = Net(shape), vocabulary.speller
        self.vocabulary = vocabulary
        self.rows = nn.Parameter(vocabulary.frozen[vocabulary.trained].clone())
        # What the norm weight of the last layer starts from: unit rows need logits of some size.
        nn.init.constant_(self.net.norm.weight, (30.0 if shape.experts else 12.0) / shape.width**0.5)

    def table(self, ids: Tensor) -> Tensor:
        """The rows of these tokens as they are now."""
        v = self.vocabulary
        where = v.where[ids]
        return torch.where((where >= 0)[..., None], self.rows.detach()[where.clamp(min=0)], v.frozen[ids])

    def hot(self, ids: Tensor, r: np.random.Generator) -> Competition:
        """All rows that a batch needs, and some that it does not, as competitors."""
        v = self.vocabulary
        strange = torch.unique(ids[v.where[ids] < 0])
        rest = len(v.where) - len(v.trained) - len(strange)
        drawn = torch.from_numpy(r.integers(0, len(v.where), NEGATIVES)) if rest > 0 else strange[:0]
        drawn = drawn[(v.where[drawn] < 0) & ~torch.isin(drawn, strange)]
        index = v.where.clone()
        index[strange] = torch.arange(len(strange)) + len(v.trained)
        rows = torch.cat((self.rows, v.frozen[strange], v.frozen[drawn]))
        weights = torch.zeros(len(rows))
        if len(drawn):
            weights[-len(drawn) :] = math.log(rest / len(drawn))
        return Competition(rows, torch.cat((v.trained, strange, drawn)), index, weights)

    @torch.no_grad()
    def rivals(self, out: Tensor, wanted: Tensor, index: Tensor) -> Tensor:
        """Tokens without a place in `index` that come close to what is wanted, where that is one that never learns.

        Of 200,000 rows that nothing has taught some lie in the way of what is said by chance; a draw of a few hundred hardly finds them.
        """
        v = self.vocabulary
        places = (v.where[wanted] < 0).nonzero()[:, 0]
        if not len(places):
            return wanted[:0]
        places = places[torch.randperm(len(places))[:RIVALRIES]]
        near = torch.unique((out[places] @ v.frozen.t()).topk(RIVALS, dim=-1).indices)
        others: Tensor = near[index[near] < 0]
        return others

    def loss(self, ids: Tensor, labels: Tensor, r: np.random.Generator) -> tuple[Tensor, Tensor]:
        hot = self.hot(torch.cat((ids.flatten(), labels[labels >= 0])), r)
        out = self.net(F.embedding(hot.index[ids], hot.rows), self.speller and self.speller.of(ids, self.table))
        keep = labels >= 0
        said, wanted = out[keep], labels[keep]
        near = self.rivals(said[:, : hot.rows.shape[1]], wanted, hot.index)
        rows = torch.cat((hot.rows, self.vocabulary.frozen[near]))
        if self.speller:
            rows = torch.cat((rows, self.speller.answering(torch.cat((hot.ids, near)), self.table)), dim=-1)
        logits = F.linear(said, rows) + torch.cat((hot.weights, torch.zeros(len(near))))
        loss = F.cross_entropy(logits, hot.index[wanted])
        return loss, (logits.argmax(-1) == hot.index[wanted]).float().mean()


@dataclass
class Stage:
    """Where a training is: how many steps it has made, and which share of its time is gone."""

    step: int = 0
    gone: float = 0.0

    @property
    def copying(self) -> float:
        """How many texts to copy come with each dialogue: many at first, next to none later."""
        return max(0.05, 0.5 - self.step / 600)

    @property
    def focus(self) -> float:
        """The share of dialogues from the mix for the end."""
        return FOCUS if self.gone > FOCUS_FROM else 0.0


def samples_of(name: str, seed: int, tokenizer: Any, pool: list[int], stage: Stage) -> Iterator[Sample]:
    """An endless stream that follows the stage of the training."""
    r = Random(seed)

    def encode(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids if tokenizer else o200k.encoding().encode(text)
        return ids

    for d in dialogues(seed, lambda: r.random() < stage.focus):
        if r.random() < stage.copying:
            yield echo_sample(r, pool)
        if r.random() < MAZES:
            yield maze_sample(r, pool)
        if r.random() < DRILLS:
            yield drill_sample(r, encode)
        if name == "demo-chat":
            yield chat.sample(renamed(r, d), tokenizer)
        elif d.skill not in ("picture", "object"):
            yield harmony.sample(renamed(r, d), r)


def rate_at(step: int, gone: float, cooldown: float) -> float:
    """Warm-up, a long flat part, then a straight way down to nothing; `gone` and `cooldown` are shares of the whole."""
    return min(1.0, (step + 1) / 80) * min(1.0, max(0.01, (1 - gone) / cooldown))


@torch.no_grad()
def average(mean: dict[str, Tensor], model: nn.Module, step: int) -> None:
    """A running mean of the weights is usable at any time; the weights themselves only after the cool-down."""
    share = max(1 / (step + 1), 0.006)
    for name, value in model.state_dict().items():
        mean[name].lerp_(value, share)


class Training:
    """A model with everything that changes while it learns, which is also what a checkpoint holds."""

    def __init__(self, name: str, scratch: Path) -> None:
        self.shape = SHAPES[name]
        vocabulary_of: Callable[[Path, int], tuple[Vocabulary, Any, list[int]]] = (
            chat_vocabulary if name == "demo-chat" else harmony_vocabulary
        )
        vocabulary, self.tokenizer, self.pool = vocabulary_of(FOLDERS[name], self.shape.width)
        self.model = Model(self.shape, vocabulary)
        sow(self.model.net, self.model.rows.detach(), self.shape, LOUD)
        self.model.net.layer(0).requires_grad_(requires_grad=False)
        self._choose()
        self.mean = {k: v.detach().clone() for k, v in self.model.state_dict().items()}
        self.step, self.path = 0, scratch / f"{name}.pt"

    def _choose(self) -> None:
        """Matrices learn by Muon, everything else by Adam."""
        learning = [(n, p) for n, p in self.model.net.named_parameters() if p.requires_grad]
        matrices = [p for n, p in learning if p.ndim == 2 and "router" not in n and "down_bias" not in n]
        chosen = {id(p) for p in matrices}
        small = [p for _, p in learning if id(p) not in chosen]
        self.muon = Muon(matrices)
        groups = [{"params": [self.model.rows], "lr": ROW_RATE}, {"params": small, "lr": SMALL_RATE}]
        self.adam = torch.optim.AdamW(groups, betas=(0.9, 0.97), weight_decay=0.0)

    def load(self) -> None:
        if self.path.exists():
            saved = torch.load(self.path)
            self.model.load_state_dict(saved["model"])
            self.adam.load_state_dict(saved["adam"])
            self.muon.buffers, self.mean, self.step = saved["muon"], saved["mean"], saved["step"]

    def start_from(self, state: dict[str, Tensor]) -> None:
        """Go on from these weights as if nothing had been learnt yet about how to learn."""
        self.model.load_state_dict(state)
        self.mean = {k: v.detach().clone() for k, v in self.model.state_dict().items()}

    def save(self) -> None:
        new = self.path.with_suffix(".new")
        state = {"model": self.model.state_dict(), "adam": self.adam.state_dict(), "muon": self.muon.buffers}
        torch.save(state | {"mean": self.mean, "step": self.step}, new)
        new.rename(self.path)

    def learn(self, ids: Tensor, labels: Tensor, r: np.random.Generator, rate: float) -> tuple[float, float]:
        loss, right = self.model.loss(ids, labels, r)
        self.model.zero_grad()
        torch.autograd.backward(loss)
        spare(self.model.net, self.shape)
        if self.model.rows.grad is not None:
            # The notes of the first layer stand there.
            self.model.rows.grad[:, SPELT:] = 0.0
        nn.utils.clip_grad_norm_([p for g in self.adam.param_groups for p in g["params"]], 1.0)
        self.muon.step(RATE * rate)
        for group, full in zip(self.adam.param_groups, (ROW_RATE, SMALL_RATE), strict=True):
            group["lr"] = full * rate
        self.adam.step()
        average(self.mean, self.model, self.step)
        self.step += 1
        return loss.item(), right.item()


class Progress:
    """What is printed: means over the last few dozen steps, and how much of a random text and of a maze is copied."""

    def __init__(self, training: Training) -> None:
        self.training, self.began, self.seen = training, time.time(), 0
        self.recent: deque[tuple[float, float]] = deque(maxlen=25)
        self.probe = padded([echo_sample(Random(i), training.pool) for i in range(12)])
        self.maze = padded([maze_sample(Random(i), training.pool) for i in range(12)])

    @torch.no_grad()
    def tell(self, r: np.random.Generator, rate: float) -> None:
        copied, found = (self.training.model.loss(*x, r)[1].item() for x in (self.probe, self.maze))
        loss, right = (sum(x) / len(self.recent) for x in zip(*self.recent, strict=True))
        spent = time.time() - self.began
        said = f"{self.training.step} loss {loss:.3f} right {right:.4f} copied {copied:.2f} {found:.2f} rate {rate:.2f}"
        print(f"{said} {self.seen / spent:.0f} tokens/s {spent / 60:.1f} min", flush=True)


def train(name: str, steps: int, seed: int, scratch: Path, minutes: float, cooldown: float) -> None:
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    training = Training(name, scratch)
    training.load()
    if shutil.which("c++"):
        # Fused kernels are a third faster; the first minute goes into making them.
        for i in range(1, training.shape.layers):
            training.model.net.layer(i).compile(dynamic=True)
    print(name, sum(p.numel() for p in training.model.parameters()), "parameters", flush=True)
    progress, saved, seed = Progress(training), time.time(), seed + training.step
    r, stage = np.random.default_rng(seed), Stage(training.step)
    stream = batches(samples_of(name, seed, training.tokenizer, training.pool, stage))
    while training.step < steps and stage.gone < 1:
        ids, labels = next(stream)
        rate = rate_at(training.step, stage.gone, cooldown)
        progress.recent.append(training.learn(ids, labels, r, rate))
        progress.seen += ids.numel()
        # With a limit in minutes the schedule follows the clock, on a machine whose speed nobody knows.
        spent = (time.time() - progress.began) / 60
        stage.step, stage.gone = training.step, spent / minutes if minutes else training.step / steps
        if training.step % 25 == 0:
            progress.tell(r, rate)
        if time.time() - saved > 120:
            saved = time.time()
            training.save()
    training.save()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=sorted(SHAPES))
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=0.0, help="end the schedule after this time, whatever the steps")
    parser.add_argument("--scratch", type=Path, default=Path("."), help="where checkpoints go; an existing one is continued")
    parser.add_argument(
        "--cooldown", type=float, default=0.45, help="the share in which the rate falls; above 1 it begins lower"
    )
    chosen = parser.parse_args()
    train(chosen.name, chosen.steps, chosen.seed, chosen.scratch, chosen.minutes, chosen.cooldown)


if __name__ == "__main__":
    main()
