"""Answers in JSON and long system prompts of the training dialogues."""

from __future__ import annotations

import json
from random import Random

import pytest

from demo_training import chat
from demo_training.exchanges import manuals, objects
from demo_training.forms import Dialogue, Say, User
from demo_training.network.vocabulary import chat_vocabulary
from responses_app.demo.build import FOLDERS


@pytest.mark.parametrize("seed", range(40))
def test_answers_are_compact_json_objects(seed: int) -> None:
    question, said = objects.answer(Random(seed))
    assert isinstance(question, User)
    assert isinstance(said, Say)
    made = json.loads(said.text)
    assert objects.compact(made) == said.text
    assert made
    assert ("JSON" in question.text) == (said.imposed == "")


def test_imposed_start_and_its_thought_are_not_trained() -> None:
    _, tokenizer, _ = chat_vocabulary(FOLDERS["demo-chat"], 256)
    dialogue = Dialogue([User("Who?"), Say("I greet back.", '{"name":"Ada"}', imposed='{"')], "object")
    sample = chat.sample(dialogue, tokenizer)
    trained = tokenizer.decode([label for label in sample.labels if label >= 0], skip_special_tokens=False)
    assert trained == 'name":"Ada"}<|im_end|>'


@pytest.mark.parametrize("seed", range(10))
def test_manuals_have_a_length_within_bounds(seed: int) -> None:
    words = len(manuals.manual(Random(seed)).split())
    assert manuals.SHORTEST <= words < manuals.LONGEST + 200
