"""Heads that no training made: they spell the words that a call copies, and leave alone what is said elsewhere."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from torch import Tensor

from demo_training import further, harmony, train
from demo_training.dialogues import dialogues
from demo_training.forms import Say
from demo_training.network.nets import SHARPER
from responses_app.demo import build, spelling
from responses_app.demo.o200k_files import special_names

WIDTH = train.SHAPES["demo-harmony"].width


@pytest.fixture(scope="module")
def spellings() -> list[bytes]:
    return build.spellings(special_names())


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """demo-harmony as an engine loads it."""
    from transformers import AutoModelForCausalLM

    folder = build.build("demo-harmony", tmp_path_factory.mktemp("models"))
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")


@pytest.fixture(scope="module")
def trained() -> train.Model:
    """The same as it is trained."""
    training = train.Training("demo-harmony", Path())
    training.start_from(further.committed("demo-harmony"))
    return training.model


def calls(count: int) -> list[list[int]]:
    """Conversations that end with the call of a tool."""
    r, out = Random(5), []
    for dialogue in dialogues(991):
        ids = harmony.sample(dialogue, r).ids
        if len(out) == count:
            return out
        if len(ids) < 500 and isinstance(dialogue.turns[-1], Say) and dialogue.turns[-1].calls:
            out.append(ids)
    raise AssertionError("dialogues have no end")


def test_a_checkpoint_says_what_training_counted_on(checkpoint: Any, trained: train.Model) -> None:
    quotes, places = trained.vocabulary.speller, 0
    assert quotes is not None
    for ids in calls(6):
        given = torch.tensor([ids])
        with torch.no_grad():
            last = checkpoint.model(given).last_hidden_state[0]
            rows = trained.table(given)
            counted = trained.net(rows, quotes.of(given, trained.table))[0]
        assert _apart(last[:, :WIDTH] / SHARPER, counted[:, :WIDTH]).max() < 0.06
        spelt = counted[:, WIDTH:]
        says = spelt.norm(dim=-1) > 1.0
        assert _apart(last[says, WIDTH : WIDTH + spelt.shape[1]] / SHARPER, spelt[says]).max() < 0.1
        assert last[~says, WIDTH:].norm(dim=-1).max() / SHARPER < 4.0
        places += int(says.sum())
    assert places >= 12, "values were opened"


def _apart(one: Tensor, other: Tensor) -> Tensor:
    return (one - other).norm(dim=-1) / other.norm(dim=-1)


@pytest.mark.parametrize("word", [" Neptune", " zucchini", " Yesterday", " Frankenstein"])
def test_a_word_is_spelt_where_a_value_opens(word: str, spellings: list[bytes], trained: train.Model) -> None:
    """The model is made to look at the word; whether it does so by itself is a matter of its training."""
    speller = trained.vocabulary.speller
    assert speller is not None
    token = spellings.index(word.encode())
    wanted = [int(p) for p in spelling.pieces_of(spellings)[token] if p >= 0]
    given = torch.tensor([[token, *(int(some[0]) for some in (speller.colons, speller.quotes)), *wanted]])
    spelt = speller.of(given, trained.table)
    codes = speller.answering(torch.arange(len(spellings)), trained.table)
    size = spelt.notes.shape[-1]
    said = [codes[:, :size] @ spelt.notes[0, 0], *(codes[:, size:] @ one for one in spelt.found[0, 3:-1])]
    assert [int(one.argmax()) for one in said[: len(wanted)]] == wanted
    assert bool(spelt.opens[0, 2])
    assert not spelt.found[0, :3].any()


def test_only_a_value_is_spelt(spellings: list[bytes], trained: train.Model) -> None:
    """A quotation mark in a sentence, or in front of a key, is none."""
    speller = trained.vocabulary.speller
    assert speller is not None
    ids = harmony._plain('He said "Neptune" and called {"planet": 9, "moon": null}')
    spelt = speller.of(torch.tensor([ids]), trained.table)
    assert not spelt.opens.any()
    assert not spelt.found.any()
