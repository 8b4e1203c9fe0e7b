"""Teach demo-chat to see: `python -m demo_training.vision.eyes --minutes 10`.

The text model stays as it is. The eyes, a small vision transformer, learn to say what they see in places where the
text model has only ever read words: first to sound like these words, then to get the right answers.
"""

# A command line prints.
# ruff: noqa: T201
from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from demo_training import chat, dialogues
from demo_training.chat import IGNORE, Sample
from demo_training.drills import padded
from demo_training.exchanges import pictures
from demo_training.forms import Dialogue, User
from demo_training.network.nets import Net
from demo_training.train import SHAPES
from demo_training.vision.drawing import any_drawing, draw
from responses_app.demo.build import EYES, FOLDERS, image_tokenizer
from responses_app.demo.packing import pack, unpack

SIDE, SEEN = 64, 4
MARKS = f"<fake_token_around_image><global-img>{'<image>' * SEEN}<fake_token_around_image>"
RATE, MANY, TALKS = 1.5e-3, 48, 12
# The share of the time in which the eyes learn to sound like words; after it they learn from answers.
WORDS = 0.3
# So many drawings of each thing are made beforehand.
DRAWN = 40
Known = list[tuple[str, str]]


class Eyes(nn.Module):
    """Pictures in, rows of the mind out; and the rows of the marks around them."""

    def __init__(self) -> None:
        super().__init__()
        from transformers import Idefics3Config
        from transformers.models.idefics3.modeling_idefics3 import Idefics3Connector, Idefics3VisionTransformer

        config = Idefics3Config.from_pretrained(FOLDERS["demo-chat"])
        config.vision_config._attn_implementation = "sdpa"
        self.vision_model = Idefics3VisionTransformer(config.vision_config)
        self.connector = Idefics3Connector(config)
        self.marks = nn.Parameter(torch.randn(3, config.text_config.hidden_size) * 0.02)

    def forward(self, pixels: Tensor) -> Tensor:
        seen: Tensor = self.connector(self.vision_model(pixel_values=pixels).last_hidden_state)
        return seen


class Mind(nn.Module):
    """The text model of demo-chat as it was committed; nothing here learns."""

    def __init__(self) -> None:
        super().__init__()
        from safetensors.numpy import load_file

        tensors = {
            name.removeprefix("model."): torch.from_numpy(value)
            for name, value in unpack(load_file(FOLDERS["demo-chat"] / "weights.safetensors")).items()
        }
        self.rows = tensors.pop("embed_tokens.weight")
        self.net = Net(SHAPES["demo-chat"])
        self.net.load_state_dict(tensors)
        self.requires_grad_(requires_grad=False)


class Album:
    """Drawings as the processor of the checkpoint makes them: square, small, from -1 to 1."""

    def __init__(self, r: Random) -> None:
        from PIL import Image

        self.drawings = {
            one: [np.asarray(draw(r, *one).resize((SIDE, SIDE), Image.Resampling.LANCZOS)) for _ in range(DRAWN)]
            for one in _EVERY
        }

    def pixels(self, r: Random, known: Known) -> Tensor:
        """One drawing of each."""
        chosen = np.stack([r.choice(self.drawings[one]) for one in known])
        return torch.from_numpy(chosen).permute(0, 3, 1, 2).float() / 127.5 - 1


def shown(dialogue: Dialogue) -> tuple[Dialogue, Known]:
    """The same dialogue with marks for pictures, and what the pictures show."""
    known: Known = []
    turns = []
    for turn in dialogue.turns:
        if isinstance(turn, User):
            words = [(turn.text.find(pictures.shown(*one)), one) for one in _EVERY if pictures.shown(*one) in turn.text]
            text = turn.text
            for _, one in sorted(words):
                text = text.replace(f": {one[0]} {one[1]}]", f":{MARKS}]")
                known.append(one)
            turn = replace(turn, text=text)
        turns.append(turn)
    return replace(dialogue, turns=turns), known


_EVERY = [(colour, shape) for colour in pictures.COLOURS for shape in pictures.SHAPES]


def talks(r: Random, tokenizer: Any) -> Iterator[tuple[list[Sample], Known]]:
    """Batches of dialogues about pictures."""
    while True:
        made = [shown(dialogues.picture_dialogue(r)) for _ in range(TALKS)]
        yield [chat.sample(one, tokenizer) for one, _ in made], [thing for _, known in made for thing in known]


class Lesson:
    """Eyes and a mind that answers for them."""

    def __init__(self, r: Random) -> None:
        self.eyes, self.mind, self.tokenizer, self.album = Eyes(), Mind(), image_tokenizer(), Album(r)
        self.size = len(self.mind.rows)
        self.image = self.size

    def sound(self, r: Random) -> Tensor:
        """How far what the eyes say is from the words for it."""
        known = [any_drawing(r) for _ in range(MANY)]
        wanted = torch.zeros(MANY, SEEN, self.mind.rows.shape[1])
        weight = torch.zeros(MANY, SEEN, 1)
        for n, one in enumerate(known):
            ids = self.tokenizer.encode(f" {one[0]} {one[1]}", add_special_tokens=False).ids
            wanted[n, : len(ids)], weight[n, : len(ids)] = self.mind.rows[ids], 1.0
        far: Tensor = ((self.eyes(self.album.pixels(r, known)) - wanted).pow(2) * weight).sum() / weight.sum()
        return far

    def answer(self, r: Random, samples: list[Sample], known: Known) -> tuple[Tensor, Tensor]:
        """How wrong the answers are, and the share of right tokens."""
        ids, labels = padded(samples)
        rows = F.embedding(ids, torch.cat((self.mind.rows, self.eyes.marks)))
        place = ids == self.image
        rows = rows.masked_scatter(place[..., None], self.eyes(self.album.pixels(r, known)).flatten(0, 1))
        keep = labels != IGNORE
        logits = F.linear(self.mind.net(rows)[keep], self.mind.rows) / 2
        return F.cross_entropy(logits, labels[keep]), (logits.argmax(-1) == labels[keep]).float().mean()


def teach(minutes: float, seed: int) -> Eyes:
    torch.manual_seed(seed)
    r = Random(seed)
    lesson = Lesson(r)
    learner = torch.optim.AdamW(lesson.eyes.parameters(), lr=RATE, weight_decay=0.01)
    batches, began, gone, step = talks(r, lesson.tokenizer), time.time(), 0.0, 0
    while gone < 1:
        for group in learner.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / 50) * min(1.0, (1 - gone) / 0.3 + 0.01)
        loss, right = (lesson.sound(r), torch.zeros(())) if gone < WORDS else lesson.answer(r, *next(batches))
        learner.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(lesson.eyes.parameters(), 1.0)
        learner.step()
        step, gone = step + 1, (time.time() - began) / 60 / minutes
        if step % 25 == 0:
            print(f"{step} loss {loss.item():.3f} right {right.item():.3f} {gone:.2f}", flush=True)
    return lesson.eyes


def main() -> None:
    from safetensors.numpy import save_file

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--levels", type=int, default=127)
    chosen = parser.parse_args()
    state = teach(chosen.minutes, chosen.seed).state_dict()
    tensors = {f"model.{name}": np.ascontiguousarray(value.float().numpy()) for name, value in state.items()}
    save_file(pack(tensors, chosen.levels), FOLDERS["demo-chat"] / EYES)


if __name__ == "__main__":
    main()
