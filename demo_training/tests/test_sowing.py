"""A model that has learnt nothing yet copies what it reads: that is what is sown."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
import torch

from demo_training import drills, train
from demo_training.chat import Sample
from demo_training.network import vocabulary
from demo_training.network.sowing import BACK, NOTE, sow
from responses_app.demo.build import FOLDERS
from responses_app.demo.rows import SPELT


def untrained(name: str) -> tuple[train.Model, list[int]]:
    shape = train.SHAPES[name]
    of = vocabulary.chat_vocabulary if name == "demo-chat" else vocabulary.harmony_vocabulary
    rows, _, pool = of(FOLDERS[name], shape.width)
    torch.manual_seed(1)
    model = train.Model(shape, rows)
    sow(model.net, model.rows.detach(), shape, train.LOUD)
    return model, pool


def copied(model: train.Model, samples: list[Sample]) -> float:
    with torch.no_grad():
        return model.loss(*drills.padded(samples), np.random.default_rng(0))[1].item()


@pytest.mark.parametrize("name", sorted(train.SHAPES))
def test_an_untrained_model_copies_what_comes_twice(name: str) -> None:
    model, pool = untrained(name)
    assert copied(model, [drills.echo_sample(Random(i), pool) for i in range(8)]) > 0.9


@pytest.mark.parametrize("name", sorted(train.SHAPES))
def test_two_tokens_find_what_one_would_not(name: str) -> None:
    model, pool = untrained(name)
    mazes = [drills.maze_sample(Random(i), pool) for i in range(8)]
    both = copied(model, mazes)
    # Forget the older of the two notes: what is left is the usual circuit.
    with torch.no_grad():
        model.net.layer(0).self_attn.o_proj.weight[SPELT + NOTE * BACK.index(2) :] = 0.0
    assert both > 0.5
    assert both > copied(model, mazes) + 0.15


def test_the_rows_leave_the_notes_their_place() -> None:
    model, _ = untrained("demo-chat")
    assert not model.rows.detach()[:, SPELT:].any()
