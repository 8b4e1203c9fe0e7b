"""Orders of the items of a history: each template renders each text once, as the templates of the hub need it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from responses_app.dialects.chat.dialect import ChatDialect
from responses_app.dialects.chat.template import ChatTemplate
from tests.support.dialects.families.formats.registry import FAMILIES
from tests.support.dialects.parser_driver import (
    CHATML,
    WEATHER,
    assistant,
    byte_vocabulary,
    call_output,
    function_call,
    reasoning,
    turn,
    user,
)

_CALLS = "{% for call in message.tool_calls or [] %}(call {{ call.function | tojson }}){% endfor %}"
_TURN = "[{{ message.role }}]{{ message.reasoning_content }}{{ message.content }}" + _CALLS
_TOOLS = "{{ tools | tojson if tools else '' }}"
_LOOP = _TOOLS + "{% for message in messages %}BODY{% endfor %}"
# As MiniMax: an output must stand behind the message with its call.
_BEHIND_CALL = _LOOP.replace(
    "BODY",
    "{% if message.role == 'tool' and not messages[loop.index0 - 1].tool_calls and messages[loop.index0 - 1].role != 'tool' %}"
    "{{ raise_exception('No call') }}{% endif %}" + _TURN,
)
# As Gemma 4: the message with the calls writes the outputs behind, and other outputs are not written.
_WITH_CALL = (
    _TOOLS + "{% for message in messages if message.role != 'tool' %}" + _TURN + "{% if message.tool_calls %}"
    "{% set here = namespace(on=false) %}{% for other in messages %}{% if other == message %}{% set here.on = true %}"
    "{% elif here.on and other.role == 'tool' %}[tool]{{ other.content }}{% else %}{% set here.on = false %}{% endif %}"
    "{% endfor %}{% endif %}{% endfor %}"
)
TEMPLATES: Mapping[str, str] = {
    "chatml": CHATML,
    "behind_call": _BEHIND_CALL,
    "with_call": _WITH_CALL,
    **{name: family.template for name, family in FAMILIES.items()},
}
MARK = re.compile(r"mark\w+?z")


def _call(name: str) -> dict[str, Any]:
    return function_call(f"call_{name}", f'{{"city": "markcall{name}z"}}')


def _output(name: str, output: Any = None) -> dict[str, Any]:
    return call_output(f"call_{name}", f"markoutput{name}z" if output is None else output)


def _rules(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": text}]}


_USER, _AGAIN, _TEXT = user("markquestionz"), user("markagainz"), assistant("marktextz")
_ANSWER, _THOUGHT, _RULES = assistant("markanswerz"), reasoning("Hm."), _rules("markrulesz")
_DONE = (_ANSWER, _AGAIN)
_PARTS = [{"type": "input_text", "text": "markfirstz"}, {"type": "input_text", "text": "marksecondz"}]
ORDERS: Mapping[str, Sequence[dict[str, Any]]] = {
    "text_between": (_USER, _call("a"), _TEXT, _output("a")),
    "text_between_and_more": (_USER, _call("a"), _TEXT, _output("a"), *_DONE),
    "text_around": (_USER, assistant("markbeforez"), _call("a"), _TEXT, _output("a"), *_DONE),
    "question_between": (_USER, _call("a"), _AGAIN, _output("a")),
    "rules_between": (_USER, _call("a"), _RULES, _output("a"), *_DONE),
    "reasoning_between": (_USER, _THOUGHT, _call("a"), _THOUGHT, _output("a"), *_DONE),
    "reasoning_between_calls": (_USER, _THOUGHT, _call("a"), _THOUGHT, _call("b"), _output("a"), _output("b")),
    "text_between_calls": (_USER, _TEXT, _call("a"), assistant("markbeforez"), _call("b"), _output("b"), _output("a"), *_DONE),
    "other_order": (_USER, _call("a"), _call("b"), _output("b"), _output("a"), *_DONE),
    "text_between_outputs": (_USER, _call("a"), _call("b"), _output("a"), _TEXT, _output("b")),
    "question_between_outputs": (_USER, _call("a"), _call("b"), _output("b"), _AGAIN, _output("a")),
    "output_first": (_USER, _output("a"), _call("a"), *_DONE),
    "call_without_output": (_USER, _call("a"), _TEXT, _call("b"), _output("b"), *_DONE),
    "call_at_the_end": (_USER, _TEXT, _call("a")),
    "loop": (_USER, _call("a"), _output("a"), _THOUGHT, _TEXT, _call("b"), _output("b"), *_DONE),
    "same_id": (
        _USER,
        _call("a"),
        _output("a"),
        *_DONE,
        function_call("call_a", '{"city": "markcallbz"}'),
        _output("a", "markbz"),
    ),
    "empty_output": (_USER, _call("a"), _output("a", ""), *_DONE),
    "output_of_parts": (_USER, _call("a"), _output("a", _PARTS), *_DONE),
    "empty_parts": (_USER, _call("a"), _output("a", []), *_DONE),
    "json_output": (_USER, _call("a"), _output("a", '["markoutputaz", {"error": null}]'), *_DONE),
    "rules_behind": (_USER, _call("a"), _output("a"), _RULES),
    "questions_in_a_row": (_RULES, _USER, _AGAIN, _rules("markmorez"), _TEXT, _ANSWER),
}


def _dialect(template: str) -> ChatDialect:
    tokens = {"bos_token": "<s>", "eos_token": "</s>"}
    return ChatDialect(byte_vocabulary(), ChatTemplate(template, tokens), [0])


@pytest.fixture(scope="module", params=TEMPLATES)
def dialect(request: pytest.FixtureRequest) -> ChatDialect:
    """Return the dialect of each template."""
    return _dialect(TEMPLATES[request.param])


def _prompt(dialect: ChatDialect, *items: dict[str, Any], **how: Any) -> str:
    return dialect.token_text(dialect.render(turn(*items, **how)))


@pytest.mark.parametrize("tools", [(), (WEATHER,)], ids=["no_tools", "tools"])
def test_each_text_is_rendered_once(dialect: ChatDialect, tools: Sequence[Any]) -> None:
    wrong = {}
    for name, items in ORDERS.items():
        expected = Counter(MARK.findall(json.dumps(items)))
        rendered = Counter(MARK.findall(_prompt(dialect, *items, tools=tools)))
        if rendered != expected:
            wrong[name] = {"lost": expected - rendered, "twice": rendered - expected}
    assert wrong == {}


@pytest.mark.parametrize(
    ("items", "order"),
    [
        ((_USER, _call("a"), _TEXT, _output("a")), "question text calla outputa"),
        ((_USER, _call("a"), _call("b"), _output("a"), _TEXT, _output("b")), "question calla outputa text callb outputb"),
        ((_USER, _call("a"), _call("b"), _output("b"), _output("a")), "question calla callb outputa outputb"),
        ((_USER, _call("a"), _AGAIN, _output("a")), "question again calla outputa"),
        ((_USER, _call("a"), _TEXT, _call("b"), _output("b")), "question calla text callb outputb"),
    ],
    ids=["text", "text_between_outputs", "other_order", "question", "no_output"],
)
def test_calls_stand_directly_before_their_outputs(items: Sequence[Any], order: str) -> None:
    text = _prompt(_dialect(TEMPLATES["chatml"]), *items, tools=())
    assert [each[4:-1] for each in MARK.findall(text)] == order.split()
