"""Clients of npm, unmodified, in their normal use."""

from __future__ import annotations

from tests.support.clients.drive import Drive
from tests.support.clients.tapes import PERSON, USUAL_ANSWERS

TALK = {
    "text": "Hello there!",
    "stream": ["Forty-two.", ["reasoning_item", "message_output_item"]],
    "tools": [["Paris"], "It is sunny."],
    "parallel": [["Paris", "Oslo"], "Both are sunny."],
    "turns": ["One.", "Two."],
}
REFUSED = [400, "model_not_found"]


def test_openai(node: Drive) -> None:
    assert node("openai.mjs", "openai-node") == {
        "text": "Hello there!",
        "stream": ["Hm.Forty-two.", ["reasoning", "message"]],
        "tools": [["Paris"], "It is sunny."],
        "parallel": [["Paris", "Oslo"], "Both are sunny."],
        "object": PERSON,
        "turns": ["One.", "Two.", ["message", "reasoning", "message", "message"], [404, None]],
        "conversation": [
            ["Three.", "Four."],
            ["user", "reasoning", "assistant", "user", "assistant"],
            {"topic": "more"},
            True,
        ],
        "background": ["queued", "completed", "Five."],
        "compaction": [["message", "compaction"], "Ada."],
        "count": "response.input_tokens",
        "error": REFUSED,
    }


def test_openai_over_a_socket(node: Drive) -> None:
    assert node("sockets.mjs", "sockets") == {
        "text": "Hello there!",
        "lanes": ["Hello there!"] * 3,
        "accumulator": [True, ["reasoning", "message"]],
        "tools": "It is sunny.",
        "fork": [["Fork.", True]] * 2,
        "warm": ["completed", 0, "Looked."],
        "steer": [["response.steer.accepted"], "steered", "Short.", True],
        "error": [400, "previous_response_not_found", "Hello there!"],
    }


def test_openai_agents_over_a_socket(node: Drive) -> None:
    assert node("agents_sockets.mjs", "agents-node-sockets") == TALK


def test_openai_agents_over_chat_completions(node: Drive) -> None:
    assert node("agents_chat.mjs", "agents-node-chat") == {
        **USUAL_ANSWERS,
        "stream": "Forty-two.",
        "error": [404, "model_not_found"],
    }


def test_openai_agents(node: Drive) -> None:
    assert node("agents.mjs", "agents-node") == {
        **USUAL_ANSWERS,
        "stream": ["Forty-two.", ["reasoning_item", "message_output_item"]],
        "conversation": [["Three.", "Four."], ["message", "reasoning", "message", "message", "message"]],
        "shell": ["Home.", ["reasoning", "shell_call", "shell_call_output", "message"]],
        "error": REFUSED,
    }


def test_ai_sdk_with_its_openai_provider(node: Drive) -> None:
    assert node("ai.mjs", "ai-openai") == {
        **USUAL_ANSWERS,
        # It shows summaries alone.
        "stream": ["Forty-two.", None],
        "conversation": ["Three.", "Four."],
        "shell": "Home.",
        "compaction": ["openai.compaction"],
        "error": REFUSED,
    }


def test_ai_sdk_with_its_anthropic_provider(node: Drive) -> None:
    assert node("ai_messages.mjs", "ai-anthropic") == {
        **USUAL_ANSWERS,
        "stream": ["Forty-two.", "Hm."],
        "error": [404, None],
    }


def test_ai_sdk_with_its_open_responses_provider(node: Drive) -> None:
    assert node("ai.mjs", "ai-open") == {
        **USUAL_ANSWERS,
        "stream": ["Forty-two.", "Hm."],
        "open": "Hello there!",
        "error": REFUSED,
    }


def test_mastra_with_a_model_by_url(node: Drive) -> None:
    assert node("mastra.mjs", "mastra") == {**USUAL_ANSWERS, "stream": ["Forty-two.", "Hm."]}
