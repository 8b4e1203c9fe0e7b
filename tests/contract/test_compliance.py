"""Checks of the public Open Responses compliance suite over HTTP, on both profiles."""

from __future__ import annotations

from typing import Any, Final

import httpx2
import orjson
import pytest

from responses_app.protocol.conformance import validate_sse
from responses_app.protocol.conformance.spec import RESPONSE_KEYS
from tests.support import plain_http
from tests.support.api.open_responses import ITEMS
from tests.support.contract_server import Address

pytestmark = pytest.mark.engine
Body = dict[str, Any]
WEATHER: Final = {
    "type": "function",
    "name": "get_weather",
    "description": "Get the current weather for a location",
    "parameters": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
}


def message(text: str, role: str = "user", **more: Any) -> Body:
    """A message."""
    return {"type": "message", "role": role, "content": text, **more}


ASKED: Final[dict[str, Body]] = {
    "basic response": {"input": [message("Say hello in exactly 3 words.")]},
    "assistant phase": {
        "input": [
            message("I look.", "assistant", phase="commentary"),
            message("Done.", "assistant", phase="final_answer"),
            message("Thanks!"),
        ]
    },
    "streaming response": {"input": [message("Count from 1 to 5.")], "stream": True},
    "system prompt": {"input": [message("You are a pirate. Always respond in pirate speak.", "system"), message("Say hello.")]},
    "tool calling": {"input": [message("What's the weather like in San Francisco?")], "tools": [WEATHER]},
    "tool calling, streaming": {
        "input": [message("What's the weather like in San Francisco?")],
        "tools": [WEATHER],
        "stream": True,
    },
    "multi-turn": {
        "input": [
            message("My name is Alice."),
            message("Hello Alice! Nice to meet you.", "assistant"),
            message("What is my name?"),
        ]
    },
    "allowed tools without a mode": {
        "input": [message("What's the weather like in Paris?")],
        "tools": [WEATHER],
        "tool_choice": {"type": "allowed_tools", "tools": [{"type": "function", "name": "get_weather"}]},
    },
}


@pytest.fixture(params=["openai", "openresponses"])
def profile(request: pytest.FixtureRequest) -> str:
    """Both."""
    return str(request.param)


@pytest.fixture
def client(server: Address, profile: str) -> Any:
    """Speaks to the address of the profile."""
    base = server.base if profile == "openai" else server.base.replace("/v1", "/openresponses/v1")
    with plain_http.client(base_url=base, headers={"Authorization": f"Bearer {server.key}"}, timeout=120) as made:
        yield made


def post(client: httpx2.Client, body: Body, path: str = "/responses") -> httpx2.Response:
    """As the suite does."""
    return client.post(path, content=orjson.dumps(body), headers={"Content-Type": "application/json"})


def made(client: httpx2.Client, profile: str, body: Body) -> Body:
    """The response, streamed or not, of the shape that the suite's schema asks for."""
    answer = post(client, {"model": "demo-chat", "max_output_tokens": 600, **body})
    assert answer.status_code == 200, answer.text
    if not body.get("stream"):
        return shaped(answer.json())
    assert validate_sse([answer.content], profile) == []  # type: ignore[arg-type]
    events = [orjson.loads(line[6:]) for line in answer.text.split("\n") if line.startswith("data: {")]
    for event in events:
        if "response" in event:
            shaped(event["response"])
    final: Body = events[-1]["response"]
    return final


def shaped(response: Body) -> Body:
    """The response, which has every key that is required, and items of the union with theirs."""
    assert RESPONSE_KEYS | {"user"} <= set(response)
    assert isinstance(response["created_at"], int)
    for item in response["output"]:
        assert {"id", "type", *ITEMS[item["type"]].split()} <= set(item), item
        assert None not in item.values(), item
    for tool in response["tools"]:
        assert {"type", "name", "description", "parameters", "strict"} <= set(tool)
    return response


# The profiles differ in what is written: an answer and a stream of each kind of item show this.
@pytest.mark.parametrize(
    ("name", "profile"),
    [*((name, "openresponses") for name in ASKED), ("basic response", "openai"), ("tool calling, streaming", "openai")],
    indirect=["profile"],
)
def test_request_is_answered(client: httpx2.Client, profile: str, name: str) -> None:
    response = made(client, profile, ASKED[name])
    assert response["status"] == "completed"
    assert response["output"]


def test_a_call_goes_there_and_back(client: httpx2.Client, profile: str) -> None:
    requested = {**ASKED["tool calling"], "tool_choice": {"type": "function", "name": "get_weather"}}
    first = made(client, profile, requested)
    call = next(item for item in first["output"] if item["type"] == "function_call")
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}
    chained = {"previous_response_id": first["id"], "input": [output]}
    for body in ({"input": [*requested["input"], *first["output"], output]}, chained):
        made(client, profile, {"tools": [WEATHER], **body})


def test_compacted_window_continues(client: httpx2.Client, profile: str) -> None:
    requested = {
        "input": [message("My name is Alice."), message("Hi Alice!", "assistant"), message("I like tea.")],
        "prompt_cache_key": "k",
    }
    compact = post(client, {"model": "demo-chat", **requested}, "/responses/compact").json()
    assert compact["object"] == "response.compaction"
    assert compact["output"][-1]["type"] == "compaction"
    made(client, profile, {"input": [*compact["output"], message("What is my name?")], "tools": []})
    assert post(client, requested, "/responses/compact").status_code == 400
