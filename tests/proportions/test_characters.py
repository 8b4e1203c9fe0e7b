"""Characters that are cut over tokens: whole in every delta, and equal to the bytes of the tokens in all."""

from __future__ import annotations

import json
from codecs import getincrementaldecoder
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise
from typing import Any
from unicodedata import normalize

import pytest

from tests.support.engines.large_vocabulary import SCRIPTS
from tests.support.large_model_server import LargeModelServer, deltas, text_of

LOGPROBS = ["message.output_text.logprobs"]
TEXT = "naïve café — Ελλάδα, Привет, שלום, नमस्ते, สวัสดี; 日本語、漢字と仮名。한국어 🦕🦖 👩‍👩‍👧‍👦 🏳️‍🌈 ½€"
STOPS = ("🦖", "語、漢", "्ते", "\u200d👧", "어 🦕")


def enum_format(text: str) -> dict[str, Any]:
    """Return the text format of an object whose only property is `text`."""
    properties = {"text": {"type": "string", "enum": [text]}}
    schema = {"type": "object", "properties": properties, "required": ["text"], "additionalProperties": False}
    return {"format": {"type": "json_schema", "name": "copy", "strict": True, "schema": schema}}


def token_bytes(events: list[dict[str, Any]]) -> list[bytes]:
    """Return the bytes of each token of the answer's text, from the log-probabilities in the deltas."""
    entries = [entry for event in events if event["type"].endswith("output_text.delta") for entry in event["logprobs"]]
    return [bytes(entry["bytes"]) for entry in entries]


def is_cut(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return True
    return False


def test_scripts_are_cut_over_tokens_in_prompts(large: LargeModelServer) -> None:
    """The count of input tokens is that of the tokenizer, and encoding loses no character."""
    for script in SCRIPTS:
        text = "".join(map(chr, script[:60])) + " ".join(map(chr, script[-60:]))
        tokens = large.tokenizer.encode(
            f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
        ).ids
        counted = large.create("/responses/input_tokens", input=text, reasoning={"effort": "none"})
        assert counted["input_tokens"] == len(tokens), text
        assert normalize("NFC", text) in large.tokenizer.decode(tokens)


@pytest.mark.parametrize("temperature", [0, 1, 2])
def test_random_tokens_make_the_text_of_their_bytes(large: LargeModelServer, temperature: float) -> None:
    body: dict[str, Any] = {
        "input": "Hi",
        "temperature": temperature,
        "max_output_tokens": 400,
        "include": LOGPROBS,
        "ignore_eos": True,
    }
    events = large.stream(**body)
    response = events[-1]["response"]
    assert "".join(deltas(events)) == text_of(response)
    assert all(delta.encode() for delta in deltas(events))
    messages = [item for item in response["output"] if item["type"] == "message"]
    parts = [[bytes(entry["bytes"]) for entry in message["content"][0]["logprobs"]] for message in messages]
    assert list(chain.from_iterable(parts)) == token_bytes(events)
    for message, tokens in zip(messages, parts, strict=True):
        # A character that the token limit cuts is no part of the text.
        text = getincrementaldecoder("utf-8")("replace").decode(b"".join(tokens), final=message is not messages[-1])
        # Another message begins behind a stop token, without white space.
        assert message["content"][0]["text"] == (text if message is messages[0] else text.lstrip())
    assert response["usage"]["output_tokens"] == 400
    assert sum(map(is_cut, chain.from_iterable(parts))) > 10, "parts of characters are generated"


def test_forced_text_is_whole_however_it_is_cut(large: LargeModelServer) -> None:
    """Sampling chooses other tokens for the same text each time."""

    def copy(_: int) -> list[dict[str, Any]]:
        return large.stream(input="Hi", temperature=1, text=enum_format(TEXT), include=LOGPROBS)

    with ThreadPoolExecutor(3) as threads:
        copies = list(threads.map(copy, range(3)))
    for events in copies:
        assert events[-1]["response"]["status"] == "completed"
        assert json.loads("".join(deltas(events))) == {"text": TEXT}
        assert "\ufffd" not in "".join(deltas(events))
        parts = token_bytes(events)
        assert b"".join(parts).decode() == "".join(deltas(events))
        assert sum(map(is_cut, parts)) > 10
    assert len({tuple(token_bytes(events)) for events in copies}) == 3


@pytest.mark.parametrize("stop", STOPS)
def test_stop_sequence_across_tokens_ends_the_text(large: LargeModelServer, stop: str) -> None:
    events = large.stream(input="Hi", temperature=1, text=enum_format(TEXT), stop=stop)
    whole = json.dumps({"text": TEXT}, ensure_ascii=False, separators=(",", ":"))
    assert events[-1]["response"]["status"] == "completed"
    assert "".join(deltas(events)).lstrip() == whole.partition(stop)[0]


def test_stop_sequence_over_every_border_of_a_greedy_text(large: LargeModelServer) -> None:
    """Each stop sequence is the last character of a token and the first of the next."""
    body: dict[str, Any] = {"input": "Tell me a story.", "max_output_tokens": 48, "ignore_eos": True}
    events = large.stream(**body, include=LOGPROBS)
    text, parts = "".join(deltas(events)), [part.decode(errors="replace") for part in token_bytes(events)]
    stops = {first[-1] + second[0] for first, second in pairwise(parts) if first and second}
    stops = {stop for stop in stops if stop in text and "\ufffd" not in stop}
    assert len(stops) >= 5

    def stopped(stop: str) -> str:
        return text_of(large.create(**body, stop=[stop, "never in the text"]))

    with ThreadPoolExecutor(8) as threads:
        for stop, answer in zip(sorted(stops)[:8], threads.map(stopped, sorted(stops)[:8]), strict=True):
            assert answer == text.partition(stop)[0]
