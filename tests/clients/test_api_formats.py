"""Clients of PyPI that speak Chat Completions or Messages, unmodified, in their normal use."""

from __future__ import annotations

from tests.support.clients.drive import Drive
from tests.support.clients.tapes import PERSON, USUAL_ANSWERS


def test_anthropic(formats: Drive) -> None:
    assert formats("anthropic_messages.py", "anthropic") == {
        **USUAL_ANSWERS,
        "stream": ["Forty-two.", "Hm.", True, "end_turn", True],
        "runner": "It is sunny.",
        "count": True,
        "models": True,
        "error": ["NotFoundError", 404],
    }


def test_langchain_over_chat_completions(formats: Drive) -> None:
    assert formats("langchain_formats.py", "langchain-chat") == {
        **USUAL_ANSWERS,
        "stream": ["Forty-two.", True],
        "error": ["OpenAIModelNotFoundError", 404],
    }


def test_langchain_over_messages(formats: Drive) -> None:
    assert formats("langchain_formats.py", "langchain-messages") == {
        **USUAL_ANSWERS,
        "stream": ["Forty-two.", True],
        "error": ["AnthropicModelNotFoundError", 404],
    }


def test_smolagents(formats: Drive) -> None:
    assert formats("smolagents_chat.py", "smolagents") == {
        "text": "Hello there!",
        "stream": "Forty-two.",
        "tools": [[{"city": "Paris"}, {"answer": "Sunny."}], "Sunny."],
        "error": ["NotFoundError", 404],
    }


def test_dspy(formats: Drive) -> None:
    assert formats("dspy_chat.py", "dspy") == {
        "text": "Hello there!",
        "thought": {"text": "Forty-two.", "reasoning_content": "Hm."},
        "tools": [["get_weather", {"city": "Paris"}]],
        "object": PERSON,
        "error": ["LMUnsupportedModelError", None],
    }


def test_litellm(formats: Drive) -> None:
    assert formats("litellm_chat.py", "litellm-chat") == {
        **USUAL_ANSWERS,
        "stream": ["Forty-two.", "Hm."],
        "error": ["NotFoundError", 404],
    }


def test_google_adk(formats: Drive) -> None:
    assert formats("adk_chat.py", "adk") == {
        "text": ["Hello there!"],
        "stream": ["(Hm.)", "Forty-two."],
        "tools": ["(I need it.)", {"city": "Paris"}, "It is sunny."],
        "parallel": ["(I need it.)", {"city": "Paris"}, {"city": "Oslo"}, "Both are sunny."],
        "object": PERSON,
        "turns": ["(First.)", "One.", "Two."],
        "error": ["NotFoundError", 404],
    }
