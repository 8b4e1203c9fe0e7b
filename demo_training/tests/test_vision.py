"""Drawings, and their marks in dialogues."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from demo_training import dialogues
from demo_training.exchanges import pictures
from demo_training.forms import Dialogue, Say, User
from demo_training.vision.drawing import draw
from demo_training.vision.eyes import MARKS, shown


@pytest.mark.parametrize("shape", pictures.SHAPES)
@pytest.mark.parametrize("colour", pictures.COLOURS)
def test_every_thing_can_be_drawn_and_stands_out(colour: str, shape: str) -> None:
    image = np.asarray(draw(Random(3), colour, shape)).astype(int)
    ground = image[0, 0]
    apart = np.abs(image - ground).sum(axis=-1) > 100
    assert 0.02 < apart.mean() < 0.95


def test_a_drawing_is_the_same_for_the_same_chance() -> None:
    assert draw(Random(1), "red", "star").tobytes() == draw(Random(1), "red", "star").tobytes()


def test_marks_stand_for_each_picture_in_its_place() -> None:
    told = Dialogue([User("[picture: red star]\n[picture: blue ring]\nWhat is this?"), Say("t", "s")], "picture")
    made, known = shown(told)
    assert known == [("red", "star"), ("blue", "ring")]
    assert made.turns[0] == User(f"[picture:{MARKS}]\n[picture:{MARKS}]\nWhat is this?")


def test_what_is_asked_of_pictures_is_answered_truly() -> None:
    r = Random(5)
    for _ in range(300):
        made, known = shown(dialogues.picture_dialogue(r))
        assert known
        for turn in made.turns:
            if isinstance(turn, Say) and turn.text.startswith("I see a"):
                assert any(thing in turn.text for one in known for thing in one)
