"""Requests with the same meaning in Responses, Chat Completions and Messages, and the meaning of the answers."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hypothesis import strategies as st

from tests.support.images.encoded_images import drawn
from tests.support.request_bodies import ADD, CITIES, MAIL, NAMES, PERSON, THINGS, WEATHER

Body = dict[str, Any]
TOOLS: Final = {tool["name"]: tool for tool in (WEATHER, ADD, MAIL)}
# Choices of tools, and their names in Messages.
CHOICES: Final = {"auto": "auto", "required": "any", "none": "none"}
IMAGE: Final = base64.b64encode(drawn("PNG")).decode()
SCHEMA_NAME: Final = "output"


@dataclass(frozen=True, slots=True)
class AskedExchange:
    """Message of the user, with an image or not, and the answer of the assistant: texts around calls with their outputs."""

    question: str
    image: bool = False
    introduction: str = ""
    calls: Sequence[tuple[str, str]] = ()
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Meaning:
    """Request of any format. The last exchange has no answer, and calls without an answer are continued."""

    system: str
    exchanges: Sequence[AskedExchange]
    tools: Sequence[str]
    choice: str
    parallel: bool
    schema: bool
    effort: str
    stop: Sequence[str]
    sampling: Mapping[str, Any]
    limit: int
    # Whether the model writes blanks in JSON. In Messages the arguments of a call are an object, written as the model does.
    spaced: bool


@dataclass(frozen=True, slots=True)
class FormatAnswer:
    """Meaning of an answer in every format: text, calls with their arguments, and the tokens of prompt and answer."""

    text: str
    calls: list[tuple[str, Any]]
    tokens: tuple[int, int]


def _questions() -> st.SearchStrategy[str]:
    return (
        st.sampled_from(["Hello!", "What is 17 + 25?", "Tell me a story.", "Wie geht es dir? 日本語 🦕"])
        | CITIES.map("What is the weather in {}?".format)
        | NAMES.map("Hi, my name is {}. Who are you?".format)
        | THINGS.map("Tell me a story about {}.".format)
    )


def _exchanges(last: bool, images: bool) -> st.SearchStrategy[AskedExchange]:
    call = st.tuples(CITIES, st.sampled_from(["rainy, 12 degrees", '{"sky": "clear", "degrees": 21}', ""]))
    introduction, image = st.sampled_from(["", "Let me look."]), st.booleans() if images else st.just(False)
    if not last:
        answer = st.just("It is as you see.")
        return st.builds(AskedExchange, _questions(), image, introduction, st.lists(call, max_size=2), answer)
    called = st.builds(AskedExchange, _questions(), image, introduction, st.lists(call, min_size=1, max_size=2))
    return st.builds(AskedExchange, _questions(), image) | called


def meanings(efforts: Sequence[str], *, images: bool, spaced: bool) -> st.SearchStrategy[Meaning]:
    """Return requests for a model with these efforts of reasoning that reads images or not."""
    histories = st.lists(_exchanges(False, images), max_size=2)
    return st.builds(
        Meaning,
        system=st.sampled_from(["", "Answer in one sentence.", "You are a pirate.\n\nSpeak like one."]),
        exchanges=st.builds(lambda before, last: (*before, last), histories, _exchanges(True, images)),
        tools=st.lists(st.sampled_from(sorted(TOOLS)), max_size=3, unique=True),
        choice=st.sampled_from(["", *CHOICES, "named"]),
        parallel=st.booleans(),
        schema=st.integers(0, 3).map(lambda number: number == 0),
        effort=st.sampled_from(["", *efforts]),
        stop=st.sampled_from([[], [], ["."], ["the", "\n\n"]]),
        sampling=st.fixed_dictionaries(
            {"seed": st.integers(0, 2**31), "temperature": st.sampled_from([0, 0.3, 0.8, 1])},
            optional={"top_p": st.sampled_from([0.5, 0.95]), "top_k": st.sampled_from([1, 20])},
        ),
        limit=st.sampled_from([16, 96]),
        spaced=st.just(spaced),
    )


# Requests whose answers are a call and a text.
FORCED_CALL: Final = Meaning(
    system="",
    exchanges=(AskedExchange("How is the weather in Reykjavík today?"),),
    tools=("get_weather",),
    choice="required",
    parallel=True,
    schema=False,
    effort="",
    stop=(),
    sampling={"seed": 4, "temperature": 0.8},
    limit=96,
    spaced=True,
)
GREETING: Final = replace(
    FORCED_CALL, exchanges=(AskedExchange("Hello!"),), tools=(), choice="", sampling={"seed": 0, "temperature": 0.8}
)


def response_body(meaning: Meaning) -> Body:
    """Return the request in the format of Responses."""
    items: list[Body] = []
    for number, exchange in enumerate(meaning.exchanges):
        image = [{"type": "input_image", "image_url": f"data:image/png;base64,{IMAGE}"}] if exchange.image else []
        items.append({"role": "user", "content": [*image, {"type": "input_text", "text": exchange.question}]})
        if exchange.introduction:
            items.append({"role": "assistant", "content": exchange.introduction})
        for place, (city, _) in enumerate(exchange.calls):
            call = {"call_id": _call_id(number, place), "name": "get_weather", "arguments": _arguments(meaning, city)}
            items.append({"type": "function_call", **call})
        for place, (_, output) in enumerate(exchange.calls):
            items.append({"type": "function_call_output", "call_id": _call_id(number, place), "output": output})
        if exchange.answer:
            items.append({"role": "assistant", "content": exchange.answer})
    body: Body = {
        "input": items,
        "max_output_tokens": meaning.limit,
        **meaning.sampling,
    }
    body |= {"instructions": meaning.system} if meaning.system else {}
    body |= {"tools": [{**TOOLS[name], "strict": False} for name in meaning.tools]} if meaning.tools else {}
    body |= _chosen(meaning, lambda name: {"type": "function", "name": name})
    body |= {"text": {"format": {"type": "json_schema", "name": SCHEMA_NAME, "schema": PERSON}}} if meaning.schema else {}
    body |= {"reasoning": {"effort": meaning.effort}} if meaning.effort else {}
    return body | ({"stop": meaning.stop} if meaning.stop else {})


def chat_body(meaning: Meaning) -> Body:
    """Return the request in the format of Chat Completions."""
    messages: list[Body] = [{"role": "system", "content": meaning.system}] if meaning.system else []
    for number, exchange in enumerate(meaning.exchanges):
        image = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}"}}] if exchange.image else []
        messages.append({"role": "user", "content": [*image, {"type": "text", "text": exchange.question}]})
        calls = [
            {
                "type": "function",
                "id": _call_id(number, place),
                "function": {"name": "get_weather", "arguments": _arguments(meaning, city)},
            }
            for place, (city, _) in enumerate(exchange.calls)
        ]
        if exchange.introduction or calls:
            called = {"tool_calls": calls} if calls else {}
            messages.append({"role": "assistant", "content": exchange.introduction or None, **called})
        for place, (_, output) in enumerate(exchange.calls):
            messages.append({"role": "tool", "tool_call_id": _call_id(number, place), "content": output})
        if exchange.answer:
            messages.append({"role": "assistant", "content": exchange.answer})
    body: Body = {
        "messages": messages,
        "max_tokens": meaning.limit,
        **meaning.sampling,
    }
    functions = [{key: value for key, value in TOOLS[name].items() if key != "type"} for name in meaning.tools]
    body |= {"tools": [{"type": "function", "function": function} for function in functions]} if functions else {}
    body |= _chosen(meaning, lambda name: {"type": "function", "function": {"name": name}})
    schema = {"type": "json_schema", "json_schema": {"name": SCHEMA_NAME, "schema": PERSON}}
    body |= {"response_format": schema} if meaning.schema else {}
    body |= {"reasoning_effort": meaning.effort} if meaning.effort else {}
    return body | ({"stop": meaning.stop} if meaning.stop else {})


def message_body(meaning: Meaning) -> Body:
    """Return the request in the format of Messages."""
    messages: list[Body] = []
    for number, exchange in enumerate(meaning.exchanges):
        source = {"type": "base64", "media_type": "image/png", "data": IMAGE}
        image = [{"type": "image", "source": source}] if exchange.image else []
        messages.append({"role": "user", "content": [*image, {"type": "text", "text": exchange.question}]})
        texts = [{"type": "text", "text": exchange.introduction}] if exchange.introduction else []
        calls = [
            {"type": "tool_use", "id": _call_id(number, place), "name": "get_weather", "input": {"city": city}}
            for place, (city, _) in enumerate(exchange.calls)
        ]
        if texts or calls:
            messages.append({"role": "assistant", "content": [*texts, *calls]})
        if exchange.calls:
            results = [
                {"type": "tool_result", "tool_use_id": _call_id(number, place), "content": output}
                for place, (_, output) in enumerate(exchange.calls)
            ]
            messages.append({"role": "user", "content": results})
        if exchange.answer:
            messages.append({"role": "assistant", "content": exchange.answer})
    body: Body = {"messages": messages, "max_tokens": meaning.limit, **meaning.sampling}
    body |= {"system": meaning.system} if meaning.system else {}
    tools = [TOOLS[name] for name in meaning.tools]
    offered = [{"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]} for tool in tools]
    body |= {"tools": offered} if offered else {}
    choice = _message_choice(meaning)
    body |= {"tool_choice": {**choice, "disable_parallel_tool_use": not meaning.parallel}} if tools else {}
    output: Body = {"format": {"type": "json_schema", "schema": PERSON}} if meaning.schema else {}
    if meaning.effort == "none":
        body["thinking"] = {"type": "disabled"}
    elif meaning.effort:
        output["effort"] = meaning.effort
    body |= {"output_config": output} if output else {}
    return body | ({"stop_sequences": meaning.stop} if meaning.stop else {})


def response_answer(made: Mapping[str, Any]) -> FormatAnswer:
    """Return the meaning of a response."""
    messages = [item for item in made["output"] if item["type"] == "message"]
    text = "".join(part["text"] for item in messages for part in item["content"])
    calls = [(item["name"], _parsed(item["arguments"])) for item in made["output"] if item["type"] == "function_call"]
    return FormatAnswer(text, calls, (made["usage"]["input_tokens"], made["usage"]["output_tokens"]))


def chat_answer(made: Mapping[str, Any]) -> FormatAnswer:
    """Return the meaning of a completion."""
    message, usage = made["choices"][0]["message"], made["usage"]
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    calls = [(function["name"], _parsed(function["arguments"])) for function in functions]
    return FormatAnswer(message["content"] or "", calls, (usage["prompt_tokens"], usage["completion_tokens"]))


def message_answer(made: Mapping[str, Any]) -> FormatAnswer:
    """Return the meaning of a message."""
    text = "".join(block["text"] for block in made["content"] if block["type"] == "text")
    calls = [
        (block["name"], block["input"].get("INVALID_JSON", block["input"]))
        for block in made["content"]
        if block["type"] == "tool_use"
    ]
    counted = made["usage"]["input_tokens"] + made["usage"]["cache_read_input_tokens"]
    return FormatAnswer(text, calls, (counted, made["usage"]["output_tokens"]))


# By the path below `/v1`: the body of a request and the meaning of an answer of each format.
FORMATS: Final[Mapping[str, tuple[Callable[[Meaning], Body], Callable[[Mapping[str, Any]], FormatAnswer]]]] = {
    "responses": (response_body, response_answer),
    "chat/completions": (chat_body, chat_answer),
    "messages": (message_body, message_answer),
}


def _call_id(exchange: int, place: int) -> str:
    return f"call_{exchange}_{place}"


def _arguments(meaning: Meaning, city: str) -> str:
    return json.dumps({"city": city}, ensure_ascii=False, separators=None if meaning.spaced else (",", ":"))


def _parsed(arguments: str) -> Any:
    """Parse arguments; return the text of incomplete arguments."""
    try:
        return json.loads(arguments)
    except json.JSONDecodeError:
        return arguments


def _chosen(meaning: Meaning, named: Callable[[str], Body]) -> Body:
    # Messages has this in its choice of tools.
    parallel = {"parallel_tool_calls": meaning.parallel} if meaning.tools else {}
    if not meaning.tools or not meaning.choice:
        return parallel
    return {"tool_choice": named(meaning.tools[0]) if meaning.choice == "named" else meaning.choice, **parallel}


def _message_choice(meaning: Meaning) -> Body:
    if meaning.choice == "named":
        return {"type": "tool", "name": meaning.tools[0]} if meaning.tools else {}
    return {"type": CHOICES[meaning.choice or "auto"]}
