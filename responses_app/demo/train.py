"""Train a demo model from generated dialogues: `python -m responses_app.demo.train demo-chat --steps 3000 --seed 1`."""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from responses_app.demo import build, chat, harmony
from responses_app.demo.build import FOLDERS
from responses_app.demo.chat import IGNORE, Sample
from responses_app.demo.dialogues import dialogues
from responses_app.demo.nets import Net, Shape
from responses_app.demo.rows import starting_rows
from responses_app.demo.sowing import sow

SHAPES = {
    "demo-chat": Shape(width=192, layers=4, heads=6, inner=448),
    "demo-harmony": Shape(width=192, layers=4, heads=6, inner=224, experts=2),
}
BATCH, LONGEST = 4500, 2000
LETTERS, SPACED = 1600, 900
TRAINED_ROWS, NEGATIVES = 3500, 700
LOUD = 5.0


@dataclass
class Vocabulary:
    """Rows for all tokens: those in `trained` learn, the others stay as they started."""

    frozen: Tensor
    trained: Tensor
    where: Tensor

    @classmethod
    def of(cls, spellings: list[bytes], trained: list[int], width: int) -> Vocabulary:
        frozen = torch.from_numpy(starting_rows(spellings, width))
        where = torch.full((len(spellings),), -1, dtype=torch.long)
        where[torch.tensor(trained)] = torch.arange(len(trained))
        return cls(frozen, torch.tensor(trained), where)


class Model(nn.Module):
    def __init__(self, shape: Shape, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.net = Net(shape)
        self.vocabulary = vocabulary
        self.rows = nn.Parameter(vocabulary.frozen[vocabulary.trained].clone())
        # What the norm weight of the last layer starts from: unit rows need logits of some size.
        nn.init.constant_(self.net.norm.weight, 6.0 / shape.width**0.5 * 1.5)

    def hot(self, ids: Tensor, r: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """All rows that a batch needs, the index of each token id among them, and the log weight of each as a competitor."""
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
        return rows, index, weights

    def loss(self, ids: Tensor, labels: Tensor, r: np.random.Generator) -> tuple[Tensor, Tensor]:
        rows, index, weights = self.hot(torch.cat((ids.flatten(), labels[labels >= 0])), r)
        out = self.net(F.embedding(index[ids], rows))
        keep = labels >= 0
        logits = F.linear(out[keep], rows) + weights
        wanted = index[labels[keep]]
        loss = F.cross_entropy(logits, wanted)
        return loss, (logits.argmax(-1) == wanted).float().mean()


def echo_sample(r: Random, pool: list[int]) -> Sample:
    """Random tokens twice: nothing teaches copying faster."""
    ids = [r.choice(pool) for _ in range(r.randint(8, 50))]
    gap = [r.choice(pool) for _ in range(r.randint(1, 10))]
    whole = ids + gap + ids
    labels = whole[1:]
    known = len(ids) + len(gap)
    return Sample(whole[:-1], [IGNORE] * known + labels[known:])


def batches(samples: Iterator[Sample]) -> Iterator[tuple[Tensor, Tensor]]:
    """Samples of like length together, so that little is padding."""
    r = Random(0)
    while True:
        pool = sorted((s for s in itertools.islice(samples, 500) if len(s.ids) <= LONGEST), key=lambda s: len(s.ids))
        groups: list[list[Sample]] = [[]]
        for s in pool:
            if (len(groups[-1]) + 1) * len(s.ids) > BATCH:
                groups.append([])
            groups[-1].append(s)
        r.shuffle(groups)
        yield from (padded(g) for g in groups if g)


def padded(group: list[Sample]) -> tuple[Tensor, Tensor]:
    longest = max(len(s.ids) for s in group)
    ids = torch.zeros(len(group), longest, dtype=torch.long)
    labels = torch.full((len(group), longest), IGNORE, dtype=torch.long)
    for i, s in enumerate(group):
        ids[i, : len(s.ids)] = torch.tensor(s.ids)
        labels[i, : len(s.labels)] = torch.tensor(s.labels)
    return ids, labels


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
            p.mul_(1 - rate * self.decay)
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
    return x.t() if tall else x


def samples_of(name: str, seed: int, tokenizer: Any, pool: list[int], warm: list[float]) -> Iterator[Sample]:
    """An endless stream; `warm[0]` is the share of plain copying, which falls to nothing as training goes on."""
    r = Random(seed)
    for d in dialogues(seed):
        if r.random() < warm[0]:
            yield echo_sample(r, pool)
        yield chat.sample(d, tokenizer) if name == "demo-chat" else harmony.sample(d, r)


def chat_vocabulary(folder: Path, width: int) -> tuple[Vocabulary, Any, list[int]]:
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    if not path.exists():
        path.write_text(chat.train_tokenizer(itertools.islice(dialogues(99), 12000), LETTERS, SPACED))
    tokenizer = Tokenizer.from_file(str(path))
    spellings = [(tokenizer.id_to_token(i) or "").replace("Ġ", " ").encode() for i in range(tokenizer.get_vocab_size())]
    everything = list(range(len(spellings)))
    return Vocabulary.of(spellings, everything, width), tokenizer, [i for i in everything if spellings[i].strip().isalpha()]


def harmony_vocabulary(folder: Path, width: int) -> tuple[Vocabulary, None, list[int]]:
    spellings = spellings_of_harmony()
    path = folder / "rows.txt"
    if not path.exists():
        r = Random(7)
        counts = Counter(i for d in itertools.islice(dialogues(99), 12000) for i in harmony.sample(d, r).ids)
        numbers = [i for i, s in enumerate(spellings) if s.isdigit() and s.isascii() and len(s) < 3]
        chosen = {i for i, _ in counts.most_common(TRAINED_ROWS)} | set(numbers) | {harmony.RETURN}
        path.write_text("\n".join(map(str, sorted(chosen))) + "\n")
    trained = [int(line) for line in path.read_text().split()]
    pool = trained + [i for i, s in enumerate(spellings[:60000]) if s.strip().isalpha() and s.isascii()]
    return Vocabulary.of(spellings, trained, width), None, pool


def spellings_of_harmony() -> list[bytes]:
    from responses_app.demo.o200k_files import special_names

    return build.spellings(special_names())


def rate_at(step: int, gone: float, cooldown: float) -> float:
    """Warm-up, a long flat part, then a straight way down to nothing; `gone` and `cooldown` are shares of the whole."""
    return min(1.0, (step + 1) / 60) * min(1.0, max(0.01, (1 - gone) / cooldown))


@torch.no_grad()
def average(mean: dict[str, Tensor], model: nn.Module, step: int) -> None:
    """A running mean of the weights is usable at any time; the weights themselves only after the cool-down."""
    share = max(1 / (step + 1), 0.006)
    for name, value in model.state_dict().items():
        mean[name].lerp_(value, share)


def train(name: str, steps: int, seed: int, scratch: Path, minutes: float, cooldown: float) -> None:
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    shape = SHAPES[name]
    vocabulary, tokenizer, pool = (chat_vocabulary if name == "demo-chat" else harmony_vocabulary)(FOLDERS[name], shape.width)
    model = Model(shape, vocabulary)
    sow(model.net, model.rows.detach(), shape, LOUD)
    matrices = [p for n, p in model.net.named_parameters() if p.ndim == 2 and "router" not in n and "down_bias" not in n]
    chosen = {id(p) for p in matrices}
    muon = Muon(matrices)
    adam = torch.optim.AdamW([p for p in model.parameters() if id(p) not in chosen], lr=2e-3, betas=(0.9, 0.97), weight_decay=0.0)
    print(name, sum(p.numel() for p in model.parameters()), "parameters,", len(vocabulary.trained), "trained rows", flush=True)
    mean = {k: v.detach().clone() for k, v in model.state_dict().items()}
    warm, start, seen, step = [0.5], 0, 0, 0
    path = scratch / f"{name}.pt"
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        adam.load_state_dict(saved["adam"])
        muon.buffers, start = saved["muon"], saved["step"]
        mean = saved["mean"]
        seed += start
    r = np.random.default_rng(seed)
    began, told, shown, good = time.time(), time.time(), 0.0, 0.0
    stream = batches(samples_of(name, seed, tokenizer, pool, warm))
    for step in range(start, steps):
        warm[0] = max(0.04, 0.4 - step / 800)
        ids, labels = next(stream)
        loss, right = model.loss(ids, labels, r)
        model.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_([p for p in model.parameters() if id(p) not in chosen], 1.0)
        # With a limit in minutes the schedule follows the clock, on a machine whose speed nobody knows.
        gone = (time.time() - began) / 60 / minutes if minutes else step / steps
        rate = rate_at(step, gone, cooldown)
        muon.step(0.02 * rate)
        for group in adam.param_groups:
            group["lr"] = 1.5e-3 * rate
        adam.step()
        average(mean, model, step)
        seen, shown, good = seen + ids.numel(), 0.95 * shown + 0.05 * loss.item(), 0.95 * good + 0.05 * right.item()
        if step % 25 == 0:
            debias = 1 - 0.95 ** (step - start + 1)
            print(f"{step} loss {shown / debias:.3f} right {good / debias:.4f} rate {rate:.2f} {seen / (time.time() - began):.0f} tokens/s {(time.time() - began) / 60:.1f} min", flush=True)
        if time.time() - told > 120 or step == steps - 1 or gone > 1:
            told = time.time()
            torch.save({"model": model.state_dict(), "adam": adam.state_dict(), "muon": muon.buffers, "step": step + 1, "mean": mean}, path.with_suffix(".new"))
            path.with_suffix(".new").rename(path)
        if gone > 1:
            break


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=sorted(SHAPES))
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=0.0, help="end the schedule after this time, whatever the steps")
    parser.add_argument("--scratch", type=Path, default=Path("."), help="where checkpoints go; an existing one is continued")
    parser.add_argument("--cooldown", type=float, default=0.45, help="the share of the schedule in which the rate falls")
    chosen = parser.parse_args()
    train(chosen.name, chosen.steps, chosen.seed, chosen.scratch, chosen.minutes, chosen.cooldown)


if __name__ == "__main__":
    main()
