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
# As Mistral: roles must alternate among messages other than calls and outputs, and outputs have a form of their own.
_ALTERNATING = _LOOP.replace(
    "BODY",
    "{% if loop.first %}{% for each in messages | rejectattr('role', 'in', ['tool', 'system']) | rejectattr('tool_calls', 'defined') %}"
    "{% if (each.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Alternate') }}{% endif %}{% endfor %}{% endif %}"
    "[{{ message.role }}]{% if message.tool_calls %}" + _CALLS + "{% else %}{{ message.content }}{% endif %}",
)
# As Gemma 3, which has no calls.
_ALTERNATING_TEXTS = (
    "{% set rules = messages[0].content if messages[0].role == 'system' else '' %}"
    "{% for message in messages if message.role != 'system' %}"
    "{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Alternate') }}{% endif %}"
    "[{{ message.role }}]{{ rules if loop.first }}{{ message.content }}{% endfor %}"
)
# As Qwen3.5: any user message is needed.
_NEEDS_QUESTION = (
    "{% if not messages | selectattr('role', 'eq', 'user') | list %}{{ raise_exception('No question') }}{% endif %}" + CHATML
)
# As Llama 3.1 with tools, which takes the text of the first message as that of the user.
_FIRST_IS_QUESTION = (
    "{% set rest = messages[1:] if messages[0].role == 'system' else messages %}"
    "{{ messages[0].content if messages[0].role == 'system' }}[user]{{ tools | tojson if tools else '' }}{{ rest[0].content }}"
    "{% for message in rest[1:] %}" + _TURN + "{% endfor %}"
)
TEMPLATES: Mapping[str, str] = {
    "chatml": CHATML,
    "behind_call": _BEHIND_CALL,
    "with_call": _WITH_CALL,
    "alternating": _ALTERNATING,
    "alternating_texts": _ALTERNATING_TEXTS,
    "needs_question": _NEEDS_QUESTION,
    "first_is_question": _FIRST_IS_QUESTION,
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
    "answer_first": (_ANSWER, _AGAIN),
    "rules_and_answer_first": (_RULES, _TEXT, *_DONE),
    "answer_alone": (_ANSWER,),
    "answer_and_call_first": (_TEXT, _call("a"), _output("a")),
    "call_first": (_call("a"), _output("a"), _AGAIN),
    "call_alone": (_RULES, _call("a"), _output("a")),
    "call_before_question": (_USER, _call("a"), _AGAIN),
    "answers_in_a_row": (_USER, _TEXT, _THOUGHT, _ANSWER, _THOUGHT, _AGAIN),
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


@pytest.mark.parametrize(
    ("template", "items", "expected"),
    [
        ("alternating", (_ANSWER, _AGAIN), "[user][assistant]markanswerz[user]markagainz"),
        ("needs_question", (_ANSWER, _AGAIN), "<|im_start|>assistant\nmarkanswerz<|im_end|>\n<|im_start|>user\nmarkagainz"),
        ("needs_question", (_ANSWER,), "<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\nmarkanswerz"),
        ("chatml", (_ANSWER,), "<|im_start|>assistant\nmarkanswerz"),
        ("alternating_texts", (_USER, _TEXT, _THOUGHT, _ANSWER), "[user]markquestionz[assistant]marktextz\n\nmarkanswerz"),
    ],
)
def test_an_empty_question_stands_only_where_the_template_needs_a_question(template: str, items: Any, expected: str) -> None:
    assert _prompt(_dialect(TEMPLATES[template]), *items, tools=()).startswith(expected)
