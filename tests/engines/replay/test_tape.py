"""Tape files: reading, and errors with the line number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from responses_app.engine_interface import Logprob
from responses_app.engines.replay import tape
from responses_app.engines.replay.tape import Delay, Fault, Hold, InvalidTape, Recording, Tokens, recording


def written(path: Path, *lines: dict[str, Any] | str) -> Path:
    file = path / "tape.jsonl"
    file.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return file


def test_tape_has_every_kind_of_step(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        {"match": [4, 5], "chunks": [{"tokens": [1, 2]}, {"delay": 0.5}, {"tokens": [3]}], "finish": "length", "cached": 16},
        "",
        {"chunks": [{"tokens": [7], "logprobs": [[7, -0.5, [[7, -0.5], [8, -1.5]]]]}]},
        {"chunks": [{"fault": "down", "message": "gone", "seconds": 2}, {"fault": "bad"}]},
        {"chunks": [{"until": "gate"}, {"tokens": [1]}]},
    )
    assert tape.read_tape(file) == [
        Recording([Tokens([1, 2]), Delay(0.5), Tokens([3])], "length", 16, [4, 5]),
        Recording([Tokens([7], (Logprob(7, -0.5, [(7, -0.5), (8, -1.5)]),))]),
        Recording([Fault("down", "gone", 2.0), Fault("bad")]),
        Recording([Hold(Path("gate")), Tokens([1])]),
    ]


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("{not json", "JSONDecodeError"),
        ({"finish": "stop"}, "chunks"),
        ({"chunks": [], "finish": "tired"}, "tired"),
        ({"chunks": [], "cach": 3}, "cach"),
        ({"chunks": [{"tokens": ["a"]}]}, "token ids"),
        ({"chunks": [{"tokens": [1], "delay": 1}]}, "one of"),
        ({"chunks": [{"until": 3}]}, "TypeError"),
        ({"chunks": [{"text": "a"}]}, "one of"),
        ({"chunks": [{"tokens": [1], "logprob": 1}]}, "unknown logprob"),
        ({"chunks": [{"tokens": [1, 2], "logprobs": [[1, -1, []]]}]}, "2 tokens with 1 logprobs"),
        ({"chunks": [{"fault": "tired"}]}, "tired"),
        ({"chunks": [], "match": "a"}, "token ids"),
    ],
)
def test_invalid_line_is_named_with_its_mistake(tmp_path: Path, line: dict[str, Any] | str, word: str) -> None:
    file = written(tmp_path, {"chunks": []}, line)
    with pytest.raises(InvalidTape, match=r"tape\.jsonl:2: ") as caught:
        tape.read_tape(file)
    assert word in str(caught.value)


def test_recording_matches_consecutive_tokens_or_a_predicate() -> None:
    assert recording([1]).matches([])
    assert recording([1], match=[2, 3]).matches((1, 2, 3))
    assert not recording([1], match=[2, 3]).matches([2, 1, 3])
    assert not recording([1], match=[2, 3]).matches([2])
    assert recording([1], match=lambda prompt: len(prompt) > 2).matches([0, 0, 0])
    assert not recording([1], match=lambda prompt: len(prompt) > 2).matches([0])
