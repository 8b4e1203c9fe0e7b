"""The tape of the quick mode: one line for each way of asking in the load, slow enough to be interrupted."""

from __future__ import annotations

import json
from pathlib import Path

from responses_app.dialects.harmony.dialect import HarmonyDialect

PAUSE = 0.03
STORY = "".join(f" And then, on day {day}, the wind turned and they sailed on." for day in range(1, 21))
THOUGHT = "<|channel|>analysis<|message|>I need to think about that for a moment.<|end|><|start|>assistant"
CALL = "<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{arguments}<|call|>"
FINAL = "<|channel|>final<|message|>{text}<|return|>"
# What the input says, and what comes. No input says two of them.
LINES = (
    (" long story", THOUGHT + FINAL.format(text="Once upon a time." + STORY)),
    (
        " is the weather",
        THOUGHT + CALL.format(name="get_weather", arguments='{"city": "Paris, which is the capital of France"}'),
    ),
    (" my name is", THOUGHT + FINAL.format(text="Hello! It is a pleasure to meet you, and a fine day it is to meet somebody.")),
    (" is a person", THOUGHT + FINAL.format(text='{"name": "Ada", "age": 36}')),
    (" 2 and", THOUGHT + CALL.format(name="add", arguments='{"a": 2, "b": 3}')),
)


def record(path: Path) -> Path:
    """Write the tape."""
    encoding = HarmonyDialect().encoding
    lines = []
    for words, answer in LINES:
        ids = encoding.encode(answer, allowed_special="all")
        chunks = [
            step for one in ids for step in ({"tokens": [one], "logprobs": [[one, -0.5, [[one, -0.5]]]]}, {"delay": PAUSE})
        ]
        lines.append(json.dumps({"match": encoding.encode(words), "chunks": chunks}))
    path.write_text("\n".join(lines) + "\n")
    return path


def expected(text: str) -> str | None:
    """Return the message text of a completed answer to that input, if the answer has a message."""
    for words, answer in LINES:
        if words in text and "final" in answer:
            return answer.rpartition("<|message|>")[2].removesuffix("<|return|>")
    return None
