"""demo-vision: its pictures, and what it has from demo-chat."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import numpy as np
import pytest

from responses_app.demo import build as building
from responses_app.demo import dialogues, pictures
from responses_app.demo.drawing import draw
from responses_app.demo.eyes import MARKS, SEEN, shown
from responses_app.demo.forms import Dialogue, Say, User


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


def test_the_vocabulary_of_its_mind_comes_first() -> None:
    chat = json.loads((building.FOLDERS["demo-chat"] / "config.json").read_text())
    vision = json.loads((building.FOLDERS["demo-vision"] / "config.json").read_text())
    tokenizer = building.vision_tokenizer()
    assert tokenizer.token_to_id("<image>") == chat["vocab_size"] == vision["image_token_id"]
    assert tokenizer.get_vocab_size() == vision["text_config"]["vocab_size"]
    assert tokenizer.encode(MARKS).ids.count(vision["image_token_id"]) == SEEN
    same = ("hidden_size", "num_hidden_layers", "num_attention_heads", "head_dim", "rope_theta", "attention_bias")
    assert {key: chat[key] for key in same} == {key: vision["text_config"][key] for key in same}


def test_the_templates_differ_in_pictures_alone() -> None:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    texts = []
    for name in ("demo-chat", "demo-vision"):
        environment = ImmutableSandboxedEnvironment()
        environment.filters["tojson"] = json.dumps
        template = environment.from_string((building.FOLDERS[name] / "chat_template.jinja").read_text())
        content = [{"type": "text", "text": "Hi"}]
        messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": content}]
        texts.append(template.render(messages=messages, add_generation_prompt=True))
    assert texts[0] == texts[1]


def test_a_build_has_eyes_and_mind(tmp_path: Path) -> None:
    from safetensors import safe_open

    folder = building.build("demo-vision", tmp_path)
    with safe_open(folder / "model.safetensors", "np") as file:
        names = set(file.keys())
    assert {name.split(".")[1] for name in names} == {"text_model", "vision_model", "connector"}
    wanted = {"tokenizer.json", "preprocessor_config.json", "processor_config.json", "chat_template.jinja"}
    assert {path.name for path in folder.iterdir()} >= wanted
