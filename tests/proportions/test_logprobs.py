"""Log-probabilities over a large vocabulary: bytes of parts of characters, order, and the same values with and without a stream."""

from __future__ import annotations

import math
from typing import Any

from tests.support.engines.large_vocabulary import SIZE
from tests.support.large_model_server import LargeModelServer, deltas

INCLUDE = ["message.output_text.logprobs"]
BODY: dict[str, Any] = {"input": "Count to ten.", "max_output_tokens": 64, "ignore_eos": True, "include": INCLUDE}
LOWEST = -9999.0


def entries(response: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the log-probabilities of the answer's text."""
    return [entry for item in response["output"] if item["type"] == "message" for entry in item["content"][0]["logprobs"]]


def test_alternatives_are_sorted_and_hold_the_greedy_token(large: LargeModelServer) -> None:
    response = large.create(**BODY, top_logprobs=20)
    # A character that the limit of tokens cuts is left out.
    assert 61 <= len(entries(response)) <= 64
    for entry in entries(response):
        values = [other["logprob"] for other in entry["top_logprobs"]]
        assert len(values) == 20
        assert values == sorted(values, reverse=True)
        assert sum(map(math.exp, values)) <= 1.0001
        assert entry["logprob"] == values[0]
        assert entry["bytes"] == entry["top_logprobs"][0]["bytes"]
        for other in [entry, *entry["top_logprobs"]]:
            assert bytes(other["bytes"]).decode(errors="replace") == other["token"]
    assert len({tuple(other["bytes"]) for entry in entries(response) for other in entry["top_logprobs"]}) > 200


def test_stream_and_response_have_the_same_values(large: LargeModelServer) -> None:
    events = large.stream(**BODY, top_logprobs=3)
    streamed = [entry for event in events if event["type"].endswith("output_text.delta") for entry in event["logprobs"]]
    assert streamed == entries(events[-1]["response"])
    text = b"".join(bytes(entry["bytes"]) for entry in streamed).decode(errors="replace")
    # A message begins without the white space of its first token.
    assert "".join(text.split()) == "".join("".join(deltas(events)).split())


def test_sampled_tokens_are_improbable(large: LargeModelServer) -> None:
    """A random model is near to a uniform choice of the vocabulary."""
    response = large.create(**BODY, temperature=2)
    mean = sum(entry["logprob"] for entry in entries(response)) / 64
    assert -2 * math.log(SIZE) < mean < -math.log(SIZE) / 4


def test_alternatives_of_a_grammar_have_finite_values(large: LargeModelServer) -> None:
    """Tokens that a grammar forbids have the lowest value, as JSON has no infinity."""
    schema = {"type": "object", "properties": {"a": {"const": "é"}}, "required": ["a"], "additionalProperties": False}
    form = {"format": {"type": "json_schema", "name": "a", "strict": True, "schema": schema}}
    response = large.create(**{**BODY, "ignore_eos": None}, text=form, top_logprobs=20)
    values = [other["logprob"] for entry in entries(response) for other in entry["top_logprobs"]]
    assert all(LOWEST <= value <= 0 for value in values)
