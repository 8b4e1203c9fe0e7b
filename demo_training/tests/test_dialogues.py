"""The generators tell the truth: sums are right, stories are long, calls fit the tools that are declared."""

from __future__ import annotations

import itertools
from random import Random

from demo_training.cases import ASKED, CASES, UNSEEN
from demo_training.dialogues import dialogues
from demo_training.exchanges import natural, stories, sums, wishes
from demo_training.forms import Say, User
from demo_training.renamed import renamed


def test_the_same_seed_gives_the_same_dialogues() -> None:
    first, second = (list(itertools.islice(dialogues(3), 40)) for _ in range(2))
    assert first == second


def test_every_working_ends_in_the_right_result() -> None:
    r = Random(2)
    for _ in range(500):
        sign = r.choice("+-*")
        a, b = sums.numbers(r, sign)
        think, result = sums.work(a, sign, b)
        assert result == {"+": a + b, "-": a - b, "*": a * b}[sign]
        assert think.endswith(f"The result is {result}.")


def test_stories_are_long_and_end() -> None:
    r = Random(2)
    for _ in range(50):
        told = stories.tale(r)[1]
        assert isinstance(told, Say)
        assert len(told.text.split()) > 200
        assert told.text.endswith("The end.")


def test_calls_fit_their_tools() -> None:
    for dialogue in itertools.islice(dialogues(8), 400):
        tools = {t.name: t for t in dialogue.tools}
        for call in (c for t in dialogue.turns if isinstance(t, Say) for c in t.calls):
            parameters = tools[call.name].parameters
            assert set(parameters.get("required", [])) <= set(call.arguments) <= set(parameters["properties"])


def test_there_are_enough_cases() -> None:
    assert len(CASES) > 100


def test_a_request_in_a_sentence_says_what_its_call_needs() -> None:
    r = Random(4)
    for use in [*(natural.natural_use(r) for _ in range(300)), *(wishes.wish(r) for _ in range(300))]:
        for value in use.calls[0].arguments.values():
            assert isinstance(value, bool) or str(value) in use.question, use.question


def test_no_training_declares_what_is_tested_as_unseen() -> None:
    tested = {call.name for case in UNSEEN + ASKED for call in case.calls}
    assert not any(t.name in tested for d in itertools.islice(dialogues(8), 3000) for t in d.tools)


def test_what_is_renamed_is_renamed_wherever_it_is_said() -> None:
    r, changed = Random(5), 0
    for dialogue in itertools.islice(dialogues(9), 600):
        other = renamed(r, dialogue)
        changed += other != dialogue
        for before, after in zip(dialogue.turns, other.turns, strict=True):
            asked = " ".join(t.text for t in other.turns if isinstance(t, User))
            for old, new in zip(_texts(before), _texts(after), strict=True):
                assert new == old or new in asked, (old, new)
    assert changed > 30


def _texts(turn: object) -> list[str]:
    if not isinstance(turn, Say):
        return []
    return [v for call in turn.calls for v in call.arguments.values() if isinstance(v, str)]
