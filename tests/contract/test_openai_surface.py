"""The rest of the surface of the openai client, unmodified: conversations, the background, counting, compaction, other tools."""

from __future__ import annotations

import re
from typing import Any

import openai
import pytest
from openai import OpenAI
from openai.types.responses import Response

from tests.support.request_bodies import WEATHER
from tests.support.waiting import wait_until

pytestmark = pytest.mark.engine
# What the server does with any model needs one, and the vocabulary of the other model takes five times the CPU.
CHAT, HARMONY = MODELS = ["demo-chat", "demo-harmony"]
LIMIT_S = 180.0
EXEC: Any = {"type": "custom", "name": "exec", "description": "Runs a line of code"}


def retrieve_ended(client: OpenAI, uid: str) -> Response:
    """Wait until a background response has ended, and return the response."""
    running = ("queued", "in_progress")
    wait_until(lambda: client.responses.retrieve(uid).status not in running, limit_s=LIMIT_S, poll_s=0.1)
    return client.responses.retrieve(uid)


def test_a_conversation_grows_turn_by_turn(client: OpenAI) -> None:
    items: Any = [{"type": "message", "role": "user", "content": "My name is Ada."}]
    conversation = client.conversations.create(items=items, metadata={"topic": "names"})
    first = client.responses.create(model=CHAT, input="Hello!", conversation=conversation.id)
    assert first.conversation is not None
    assert first.conversation.id == conversation.id
    with client.responses.stream(model=CHAT, input="What is 2 + 2?", conversation=conversation.id) as stream:
        second = stream.get_final_response()
    kinds = [item.type for item in client.conversations.items.list(conversation.id, order="asc", limit=2)]
    expected = ["message", *(item.type for item in first.output), "message", *(item.type for item in second.output)]
    assert kinds == ["message", *expected]
    added: Any = [{"type": "message", "role": "user", "content": "Thanks!"}]
    uid = client.conversations.items.create(conversation.id, items=added).data[0].id or ""
    assert client.conversations.items.retrieve(uid, conversation_id=conversation.id).type == "message"
    client.conversations.items.delete(uid, conversation_id=conversation.id)
    assert client.conversations.update(conversation.id, metadata={"topic": "sums"}).metadata == {"topic": "sums"}
    assert client.conversations.delete(conversation.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.conversations.retrieve(conversation.id)


def test_the_background_is_polled_resumed_and_cancelled(client: OpenAI) -> None:
    queued = client.responses.create(model=CHAT, input="Hello!", background=True)
    assert queued.status == "queued"
    live = list(client.responses.retrieve(queued.id, stream=True))
    whole = retrieve_ended(client, queued.id)
    assert whole.status == "completed"
    assert live[-1].type == "response.completed"
    assert [event.sequence_number for event in live] == list(range(len(live)))
    endless = client.responses.create(
        model=CHAT, input="Hi", background=True, extra_body={"ignore_eos": True, "max_output_tokens": 30_000}
    )
    assert client.responses.cancel(endless.id).status == "cancelled"
    assert client.responses.retrieve(endless.id).status == "cancelled"


@pytest.mark.parametrize("model", MODELS)
def test_a_prompt_is_counted_as_it_will_be_billed(client: OpenAI, model: str) -> None:
    tools: Any = [WEATHER]
    counted = client.responses.input_tokens.count(model=model, input="Hello!", tools=tools, instructions="Be brief.")
    made = client.responses.create(model=model, input="Hello!", tools=tools, instructions="Be brief.", max_output_tokens=16)
    assert made.usage is not None
    assert counted.input_tokens == made.usage.input_tokens


@pytest.mark.parametrize("model", MODELS)
def test_log_probabilities_come_with_every_token_of_the_text(client: OpenAI, model: str) -> None:
    made = client.responses.create(
        model=model, input="Hello!", include=["message.output_text.logprobs"], top_logprobs=3, temperature=0
    )
    part: Any = next(item for item in made.output if item.type == "message").content[0]
    assert "".join(one.token for one in part.logprobs).strip() == part.text
    for one in part.logprobs:
        assert bytes(one.bytes).decode() == one.token
        assert len(one.top_logprobs) == 3
        # Greedy: what was said is the likeliest.
        assert one.logprob == max(top.logprob for top in one.top_logprobs)


def test_a_compaction_is_the_input_of_the_next_turn(client: OpenAI) -> None:
    first = client.responses.create(model=CHAT, input="My name is Ada.")
    compacted = client.responses.compact(model=CHAT, input="What can you do?", previous_response_id=first.id)
    assert [item.type for item in compacted.output] == ["message", "message", "compaction"]
    # The package has no type for what it is given here, the messages of the user.
    replayed: Any = [item.to_dict(warnings=False) for item in compacted.output]
    made = client.responses.create(model=CHAT, input=[*replayed, {"role": "user", "content": "What is my name?"}])
    assert made.status == "completed"


def test_sealed_reasoning_goes_back_without_a_store(client: OpenAI) -> None:
    question: Any = {"role": "user", "content": "What is 17 + 25?"}
    first = client.responses.create(model=CHAT, input=[question], store=False, include=["reasoning.encrypted_content"])
    thought: Any = next(item for item in first.output if item.type == "reasoning")
    assert thought.encrypted_content
    replayed: Any = [item.to_dict() for item in first.output]
    made = client.responses.create(model=CHAT, input=[question, *replayed, {"role": "user", "content": "Thanks!"}], store=False)
    assert made.status == "completed"


def test_a_custom_tool_and_one_of_a_namespace_are_called(client: OpenAI) -> None:
    # A demo model may write until the limit: then the call is there, and incomplete.
    custom = client.responses.create(
        model=CHAT, input="Run print(1)", tools=[EXEC], tool_choice={"type": "custom", "name": "exec"}, max_output_tokens=300
    )
    assert [item.name for item in custom.output if item.type == "custom_tool_call"] == ["exec"] * (
        custom.status == "completed"
    ) or (custom.status == "incomplete")
    space: Any = {"type": "namespace", "name": "sky", "description": "The sky", "tools": [WEATHER]}
    made = client.responses.create(
        model=CHAT, input="Weather in Paris?", tools=[space], tool_choice="required", max_output_tokens=60
    )
    calls: list[Any] = [item for item in made.output if item.type == "function_call"]
    assert made.status == "incomplete" or {(call.namespace, call.name) for call in calls} == {("sky", "get_weather")}


ZONES = """
start: city ("/" city)*
city: /[A-Z][a-z]{2,5}/
"""


REGEX = r'"[a-c]{3,5}"\n\\[0-9]{2}'


@pytest.mark.parametrize(
    ("model", "form", "shape"),
    [
        (CHAT, {"syntax": "regex", "definition": REGEX}, REGEX),
        *((model, {"syntax": "lark", "definition": ZONES}, "[A-Z][a-z]{2,5}(/[A-Z][a-z]{2,5})*") for model in MODELS),
    ],
)
def test_the_text_of_a_custom_tool_matches_its_grammar(client: OpenAI, model: str, form: dict[str, str], shape: str) -> None:
    tool: Any = {**EXEC, "format": {"type": "grammar", **form}}
    made = client.responses.create(model=model, input="Run it.", tools=[tool], tool_choice="required", max_output_tokens=200)
    calls = [item for item in made.output if item.type == "custom_tool_call"]
    assert calls or made.status == "incomplete"
    # A call that the limit cut off has the beginning of such a text.
    assert all(re.fullmatch(shape, call.input) for call in calls if made.status == "completed")


LISTED = {"output": [{"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]}


@pytest.mark.parametrize(
    ("model", "kind", "output"),
    [(CHAT, "shell", LISTED), (HARMONY, "shell", LISTED), (CHAT, "apply_patch", {"status": "completed"})],
)
def test_a_shell_and_a_patch_are_called_and_answered(client: OpenAI, model: str, kind: str, output: dict[str, Any]) -> None:
    tools: Any = [{"type": "shell", "environment": {"type": "local"}}, {"type": "apply_patch"}]
    choice: Any = {"type": kind}
    made = client.responses.create(model=model, input="List the files.", tools=tools, tool_choice=choice, max_output_tokens=300)
    calls: list[Any] = [item for item in made.output if item.type == f"{kind}_call"]
    if made.status == "incomplete":
        return
    assert len(calls) == 1
    answer: Any = {"type": f"{kind}_call_output", "call_id": calls[0].call_id, **output}
    after = client.responses.create(
        model=model, input=[answer], previous_response_id=made.id, tools=tools, max_output_tokens=50
    )
    assert after.status in ("completed", "incomplete")


def test_a_prompt_that_does_not_fit_is_made_to_fit_if_asked(client: OpenAI) -> None:
    long: Any = [{"role": "user", "content": "word " * 33_000} for _ in range(3)] + [{"role": "user", "content": "Hello!"}]
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model=CHAT, input=long)
    assert refused.value.code == "context_length_exceeded"
    made = client.responses.create(model=CHAT, input=long, truncation="auto", max_output_tokens=16)
    assert made.truncation == "auto"
    assert made.usage is not None
    assert made.usage.input_tokens < 32_768
