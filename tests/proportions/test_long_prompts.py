"""Prompts of 8,000 tokens: counts, the end of the window, truncation and compaction."""

from __future__ import annotations

from typing import Any

from tests.support.engines.large_checkpoint import MAX_MODEL_LEN
from tests.support.large_model_server import LargeModelServer, text_of

NO_REASONING = {"effort": "none"}
SENTENCE = "Die Würde des Menschen — 人間の尊厳 🦕 достоинство человека; كرامة الإنسان. "


def text_of_tokens(large: LargeModelServer, count: int) -> str:
    """Return a text with at least `count` tokens, and few more."""
    return SENTENCE * (count // len(large.tokenizer.encode(SENTENCE).ids) + 1)


def message(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": text}


def test_prompt_of_8000_tokens_is_counted_and_cached(large: LargeModelServer) -> None:
    prompt = text_of_tokens(large, 7900)
    counted = large.create("/responses/input_tokens", input=prompt, reasoning=NO_REASONING)["input_tokens"]
    assert 7900 < counted < MAX_MODEL_LEN - 64
    first, second = (large.create(input=prompt, max_output_tokens=32, ignore_eos=True) for _ in range(2))
    assert text_of(first) == text_of(second)
    for response in (first, second):
        usage = response["usage"]
        assert (usage["input_tokens"], usage["output_tokens"]) == (counted, 32)
        assert usage["total_tokens"] == counted + 32
    assert second["usage"]["input_tokens_details"]["cached_tokens"] > 7000


def test_answer_ends_with_the_window(large: LargeModelServer) -> None:
    response = large.create(input=text_of_tokens(large, MAX_MODEL_LEN - 200), ignore_eos=True)
    assert response["status"] == "incomplete"
    cut = {"reason": "max_output_tokens", "limit": "context_window", "value": MAX_MODEL_LEN}
    assert response["incomplete_details"] == cut
    assert response["usage"]["total_tokens"] == MAX_MODEL_LEN


def test_prompt_beyond_the_window_is_refused(large: LargeModelServer) -> None:
    for path in ("/responses", "/responses/input_tokens"):
        answer = large.request("POST", path, {"model": "large", "input": text_of_tokens(large, MAX_MODEL_LEN)})
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "context_length_exceeded"
        assert "8192" in answer.text


def test_truncation_leaves_the_oldest_messages_out(large: LargeModelServer) -> None:
    part = text_of_tokens(large, 900)
    roles = ["developer", *["user", "assistant"] * 9, "user"]
    items = [message(role, f"{number}: {part}") for number, role in enumerate(roles)]
    usual: dict[str, Any] = {"max_output_tokens": 100, "ignore_eos": True}
    answer = large.request("POST", "/responses", {"model": "large", "input": items, **usual})
    assert answer.json()["error"]["code"] == "context_length_exceeded"
    cut = large.create(input=items, truncation="auto", **usual)
    # As many as fit: another message of the input would not.
    input_tokens = cut["usage"]["input_tokens"]
    assert MAX_MODEL_LEN - 100 - 1000 < input_tokens <= MAX_MODEL_LEN - 100
    same = large.create(input=[items[0], *items[-(input_tokens // 900 - 1) :]], **usual)
    assert same["usage"]["input_tokens"] == input_tokens
    assert text_of(same) == text_of(cut)


def test_compaction_replaces_answers_by_a_summary(large: LargeModelServer) -> None:
    long = text_of_tokens(large, 2500)
    items = [
        message("user", "My name is Ada."),
        message("assistant", long),
        message("user", "And 漢字?"),
        message("assistant", long),
    ]
    compacted = large.create("/responses/compact", input=items)
    *users, compaction = compacted["output"]
    assert [item["content"][0]["text"] for item in users] == ["My name is Ada.", "And 漢字?"]
    assert compaction["type"] == "compaction"
    assert compacted["usage"]["input_tokens"] > 5000
    following = large.create(input=[*compacted["output"], message("user", "Go on.")], max_output_tokens=16)
    assert following["usage"]["input_tokens"] < 5000


def test_full_context_is_compacted_by_the_response(large: LargeModelServer) -> None:
    threshold = [{"type": "compaction", "compact_threshold": 3000}]
    items = [message("user", text_of_tokens(large, 3500))]
    events = large.stream(input=items, context_management=threshold, stop="a")
    response = events[-1]["response"]
    assert response["status"] == "completed"
    assert [item["type"] for item in response["output"]] == ["message", "compaction"]
