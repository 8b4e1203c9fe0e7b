"""Clients of PyPI, unmodified, in their normal use."""

from __future__ import annotations

from tests.support.clients.drive import Drive
from tests.support.clients.tapes import PERSON, USUAL_ANSWERS


def test_openai_agents(python: Drive) -> None:
    assert python("agents_loop.py", "agents-python") == {
        **USUAL_ANSWERS,
        "stream": ["Forty-two.", ["reasoning_item", "message_output_item"]],
        "conversation": [["Three.", "Four."], ["message", "reasoning", "message", "message", "message"], 4],
        "shell": ["Home.", ["reasoning_item", "tool_call_item", "tool_call_output_item", "message_output_item"]],
        "compaction": ["message", "compaction"],
        "error": ["BadRequestError", 400],
    }


def test_openai_agents_over_a_socket(python: Drive) -> None:
    assert python("agents_sockets.py", "agents-python-sockets") == {
        "text": "Hello there!",
        "stream": ["Forty-two.", ["reasoning_item", "message_output_item"]],
        "tools": [["Paris"], "It is sunny."],
        "parallel": [["Paris", "Oslo"], "Both are sunny."],
        "turns": ["One.", "Two."],
    }


def test_langchain(python: Drive) -> None:
    assert python("langchain_chat.py", "langchain") == {
        **USUAL_ANSWERS,
        "stream": ["Forty-two.", ["reasoning", "text"], True],
        "conversation": ["Three.", "Four."],
        "update": "Higher.",
        "error": ["OpenAIInvalidRequestError", 400],
    }


def test_pydantic_ai(python: Drive) -> None:
    assert python("pydantic_agent.py", "pydantic-ai") == {
        **USUAL_ANSWERS,
        "stream": ["Forty-two.", ["ThinkingPart", "TextPart"]],
        "conversation": ["Three.", "Four."],
        "compaction": "Managed.",
        "error": ["ModelNotFoundError", 400],
    }


def test_llamaindex(older: Drive) -> None:
    assert older("llamaindex_chat.py", "llamaindex") == {
        "text": "Hello there!",
        "stream": "Forty-two.",
        "tools": [["Paris"], "It is sunny."],
        "parallel": [["Oslo", "Paris"], "Both are sunny."],
        "object": PERSON,
        "turns": ["One.", "Two."],
        "error": ["BadRequestError", 400],
    }


def test_litellm(older: Drive) -> None:
    assert older("litellm_calls.py", "litellm") == {
        "text": "Hello there!",
        "stream": ["Forty-two.", "response.completed"],
        "tools": [["Paris"], "It is sunny."],
        "parallel": [["Paris", "Oslo"], "Both are sunny."],
        "object": PERSON,
        # The names are its own: it goes by the status here, and by the code there.
        "turns": ["One.", "Two.", 4, "Two.", ["BadRequestError", 404]],
        "error": ["NotFoundError", 400],
    }
