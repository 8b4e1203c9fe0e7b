"""What the models were trained on is what the server will send them."""

from __future__ import annotations

import itertools
import json
from random import Random
from typing import Any

import pytest

from demo_training import chat, harmony
from demo_training.dialogues import dialogues
from demo_training.forms import Call, Dialogue, Result, Say, Tool, User
from responses_app.demo import o200k
from responses_app.demo.build import FOLDERS

WEATHER = Tool("get_weather", "Weather", {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})


@pytest.fixture(scope="module")
def template() -> Any:
    jinja2 = pytest.importorskip("jinja2")
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    return environment.from_string((FOLDERS["demo-chat"] / "chat_template.jinja").read_text())


def _call(call: Call, as_text: bool) -> dict[str, Any]:
    arguments = json.dumps(call.arguments, ensure_ascii=False) if as_text else call.arguments
    return {"type": "function", "function": {"name": call.name, "arguments": arguments}}


def _messages(dialogue: Dialogue, as_text: bool) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = [{"role": "system", "content": dialogue.system}] if dialogue.system else []
    for turn in dialogue.turns:
        if isinstance(turn, User):
            out.append({"role": "user", "content": turn.text})
        elif isinstance(turn, Result):
            out.append({"role": "tool", "content": turn.text})
        elif isinstance(turn, Say):
            calls = [_call(c, as_text) for c in turn.calls]
            out.append({"role": "assistant", "content": turn.text, "reasoning_content": turn.think, "tool_calls": calls})
    return out


@pytest.mark.parametrize("as_text", [True, False])
def test_the_template_writes_what_training_saw(template: Any, as_text: bool) -> None:
    for dialogue in itertools.islice(dialogues(4), 150):
        if dialogue.thinking:
            tools = [t.schema() for t in dialogue.tools] or None
            assert template.render(messages=_messages(dialogue, as_text), tools=tools) == chat.full_text(dialogue)


def test_a_generation_starts_with_an_empty_thought_when_thinking_is_off(template: Any) -> None:
    messages = [{"role": "user", "content": "Hi"}]
    start = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert template.render(messages=messages, add_generation_prompt=True) == start
    assert (
        template.render(messages=messages, add_generation_prompt=True, enable_thinking=False)
        == start + "<think>\n\n</think>\n\n"
    )


def test_several_system_messages_become_one_block(template: Any) -> None:
    messages = [
        {"role": "system", "content": "One."},
        {"role": "developer", "content": "Two."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "system", "content": "Late."},
    ]
    text = template.render(messages=messages)
    assert (
        text
        == "<|im_start|>system\nOne.\n\nTwo.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>system\nLate.<|im_end|>\n"
    )


def test_earlier_thoughts_are_forgotten(template: Any) -> None:
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello", "reasoning_content": "old"},
        {"role": "user", "content": "Again"},
        {"role": "assistant", "content": "Yes", "reasoning_content": "new"},
    ]
    text = template.render(messages=messages)
    assert "old" not in text
    assert "<think>\nnew\n</think>\n\nYes" in text


def _harmony_messages(dialogue: Dialogue) -> list[Any]:
    from openai_harmony import Author, Message, Role

    out = harmony.opening_messages(dialogue, Random(5))
    final = max((i for i, t in enumerate(dialogue.turns) if isinstance(t, Say) and t.text), default=-1)
    for i, turn in enumerate(dialogue.turns):
        if isinstance(turn, User):
            out.append(Message.from_role_and_content(Role.USER, turn.text))
        elif isinstance(turn, Result):
            author = Author.new(Role.TOOL, f"functions.{turn.name}")
            out.append(
                Message.from_author_and_content(author, turn.text).with_channel("commentary").with_recipient("assistant")
            )
        elif isinstance(turn, Say):
            if i > final:
                out.append(Message.from_role_and_content(Role.ASSISTANT, turn.think).with_channel("analysis"))
            for call in turn.calls:
                arguments = json.dumps(call.arguments, ensure_ascii=False)
                out.append(
                    Message.from_role_and_content(Role.ASSISTANT, arguments)
                    .with_channel("commentary")
                    .with_recipient(f"functions.{call.name}")
                    .with_content_type("<|constrain|>json")
                )
            if turn.text:
                out.append(Message.from_role_and_content(Role.ASSISTANT, turn.text).with_channel("final"))
    return out


def test_harmony_prompts_are_the_library_s_own() -> None:
    """Reasoning behind the last final answer is kept, and no other."""
    from openai_harmony import Conversation, RenderConversationConfig, Role

    keep = RenderConversationConfig(auto_drop_analysis=False)
    for dialogue in itertools.islice(dialogues(6), 120):
        last = max(i for i, t in enumerate(dialogue.turns) if isinstance(t, Say))
        asked = Dialogue(dialogue.turns[:last], dialogue.skill, dialogue.system, dialogue.tools)
        ids, _ = harmony.tape(asked, Random(5))
        theirs = o200k.encoding().render_conversation_for_completion(
            Conversation.from_messages(_harmony_messages(asked)), Role.ASSISTANT, keep
        )
        assert ids + harmony.ASSISTANT == theirs


def test_a_call_that_is_not_the_last_is_taught_to_end_so_that_generation_goes_on() -> None:
    calls = (Call("get_weather", {"city": "Paris"}), Call("get_weather", {"city": "Oslo"}))
    sample = harmony.sample(
        Dialogue([User("Weather in Paris and Oslo?"), Say("Two calls.", "", calls)], "tools", tools=[WEATHER]), Random(1)
    )
    taught = [t for t in sample.labels if t >= 0]
    assert taught.count(harmony.CALL) == 1
    assert taught[-1] == harmony.CALL
    assert harmony.END in taught
