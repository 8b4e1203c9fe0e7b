"""Chat templates that lack a place: the input is added in another form or refused, and never dropped."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_app.dialects.base import Turn, UnsupportedInput
from responses_app.dialects.chat.dialect import ChatDialect
from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.chat.template_fit import MARKED_TEXT
from responses_app.dialects.formats.base import OutputFormat
from responses_app.dialects.formats.call_text import write_calls
from responses_app.dialects.formats.table import CALLS
from tests.support.dialects.parser_driver import (
    CHATML,
    CLOCK,
    TODAY,
    WEATHER,
    assistant,
    byte_vocabulary,
    call_output,
    function_call,
    reasoning,
    user,
)

pytestmark = pytest.mark.slow

TOOLS = "{{ tools | tojson if tools else '' }}"
TURNS = "{% for message in messages %}[{{ message.role }}]BODY{% endfor %}"
CALLS_OF = "{% for call in message.tool_calls or [] %}(call {{ call.id }} {{ call.function | tojson }}){% endfor %}"
FULL = TOOLS + TURNS.replace("BODY", "{{ message.reasoning_content }}{{ message.content }}" + CALLS_OF)
NO_TOOLS = FULL.replace(TOOLS, "")
HERMES_CALLS = "{% for call in message.tool_calls or [] %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}"
HERMES_NO_TOOLS = NO_TOOLS.replace(CALLS_OF, HERMES_CALLS)
PLAIN = TURNS.replace("BODY", "{{ message.content }}")
TOOLS_ALONE = TOOLS + PLAIN
NO_OUTPUTS = FULL.replace("{% for message in messages %}", "{% for message in messages if message.role != 'tool' %}")
ONE_CALL = "{% if (message.tool_calls or []) | length > 1 %}{{ raise_exception('One call') }}{% endif %}"
SINGLE = FULL.replace("BODY", "").replace("{{ message.content }}", ONE_CALL + "{{ message.content }}")
TEXT_OR_CALLS = TOOLS + TURNS.replace(
    "BODY", "{% if message.tool_calls %}" + CALLS_OF + "{% else %}{{ message.content }}{% endif %}"
)
# Roles must alternate among messages other than calls and outputs.
ALTERNATING = (
    "{% for message in messages | rejectattr('role', 'in', ['tool', 'system']) | rejectattr('tool_calls', 'defined') %}"
    "{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Alternate') }}{% endif %}{% endfor %}"
)
STRICT_TEXT_OR_CALLS = ALTERNATING + TEXT_OR_CALLS
STRICT_PLAIN = (
    "{% for message in messages %}{% if (message.role == 'user') != (loop.index0 % 2 == 0) or message.role == 'tool' %}"
    "{{ raise_exception('Alternate') }}{% endif %}{% endfor %}" + PLAIN
)
SHORT_IDS = FULL.replace(
    "{{ message.content }}",
    "{% for call in message.tool_calls or [] %}{% if call.id | length != 9 %}{{ raise_exception('9') }}{% endif %}{% endfor %}"
    "{% if message.tool_call_id and message.tool_call_id | length != 9 %}{{ raise_exception('9') }}{% endif %}{{ message.content }}",
)
JSON_ARGUMENTS = FULL.replace("{{ call.function | tojson }}", "{{ call.function.name + ' ' + call.function.arguments }}")
WRITTEN_ARGUMENTS = FULL.replace("{{ call.function | tojson }}", "{{ call.function.name }} {{ call.function.arguments }}")
OTHER_KEY = FULL.replace("message.reasoning_content", "message.thinking")
DROPPED_REASONING = FULL.replace("{{ message.reasoning_content }}", "") + "{# <think> </think> #}"
REMOVED_REASONING = DROPPED_REASONING.replace("{{ message.content }}", "{{ message.content.split('</think>')[-1] }}")
OPENING = FULL.replace("{{ message.reasoning_content }}", "") + "<think>\n"
THINKING_PARTS = FULL.replace(
    "{{ message.reasoning_content }}{{ message.content }}",
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'thinking' %}[THINK]{{ part.thinking }}[/THINK]{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}{% endif %}",
)
# As the templates of Kimi K2.
ID_FOR_NAME = FULL.replace(
    "{{ call.id }} {{ call.function | tojson }}", "{{ call.id }} {{ call.function.arguments | tojson }}"
).replace("[{{ message.role }}]", "[{{ message.name or message.role }}]{{ message.tool_call_id }}")
# As the older templates of Mistral: the system message stands before the last message, if that is a question.
LATE_RULES = (
    TOOLS
    + "{% set rules = messages[0].content ~ '\n\n' if messages[0].role == 'system' %}"
    + "{% for message in messages if message.role != 'system' %}[{{ message.role }}]"
    + "{{ rules if rules and loop.last and message.role == 'user' }}{{ message.content }}"
    + CALLS_OF
    + "{% endfor %}"
)
NAMELESS = FULL.replace("{{ call.id }} {{ call.function | tojson }}", "{{ call.function.arguments | tojson }}")
# As the templates of Hermes 3 and Command R+, which describe tools in words.
TOOLS_IN_WORDS = FULL.replace(
    TOOLS,
    "{% for tool in tools or [] %}({{ tool.function.name + ': ' + tool.function.description }}"
    "{% for name, each in tool.function.parameters.properties.items() %} {{ name + ' ' + each.type + ' ' + each.description }}"
    "{% endfor %}){% endfor %}",
)
# A type of a list is described by each of its types, and `null` letter by letter without end.
ENDLESS_TYPES = FULL.replace(
    TOOLS,
    "{% macro named(type) %}{% if type == 'string' %}str{% else %}{% for each in type %}{{ named(each) }}{% endfor %}{% endif %}"
    "{% endmacro %}{% for tool in tools or [] %}{{ tool | tojson }}{% for each in tool.function.parameters.properties.values() %}"
    "{{ named(each.type) }}{% endfor %}{% endfor %}",
)
OBJECT_ARGUMENTS = FULL.replace(
    "{{ call.function | tojson }}",
    "{{ call.function.name }}{% for key, value in call.function.arguments.items() %}<{{ key }}>{{ value }}</{{ key }}>{% endfor %}",
)
# As the templates of Qwen3.5 and Gemma 3: without a question an error, or no system message.
NEEDS_QUESTION = (
    "{% if not messages | selectattr('role', 'eq', 'user') | list %}{{ raise_exception('No question') }}{% endif %}" + FULL
)
RULES_IN_QUESTION = (
    "{% set rules = messages[0].content ~ '\n\n' if messages[0].role == 'system' else '' %}"
    + "{% for message in messages if message.role != 'system' %}[{{ message.role }}]"
    + "{{ rules if loop.first }}{{ message.content }}{% endfor %}"
)
# As the templates of Mistral, whose messages need a text or a call, and of Nemotron Nano v2, which drops a call at the end.
NO_EMPTY_ANSWERS = (
    "{% for message in messages %}{% if message.role == 'assistant' and not message.content and not message.tool_calls %}"
    "{{ raise_exception('Empty answer') }}{% endif %}{% endfor %}" + FULL
)
NO_CALL_AT_END = "{% set messages = messages[:-1] if messages[-1].tool_calls else messages %}" + FULL
XML_TOOLS = FULL.replace(TOOLS, "{% for tool in xml_tools or [] %}{{ tool | string }}{% endfor %}")
TEMPLATES = {
    "full": FULL,
    "chatml": CHATML,
    "no_tools": NO_TOOLS,
    "hermes_no_tools": HERMES_NO_TOOLS,
    "plain": PLAIN,
    "tools_alone": TOOLS_ALONE,
    "no_outputs": NO_OUTPUTS,
    "single": SINGLE,
    "text_or_calls": TEXT_OR_CALLS,
    "strict_text_or_calls": STRICT_TEXT_OR_CALLS,
    "strict_plain": STRICT_PLAIN,
    "short_ids": SHORT_IDS,
    "id_for_name": ID_FOR_NAME,
    "json_arguments": JSON_ARGUMENTS,
    "written_arguments": WRITTEN_ARGUMENTS,
    "other_key": OTHER_KEY,
    "dropped_reasoning": DROPPED_REASONING,
    "removed_reasoning": REMOVED_REASONING,
    "thinking_parts": THINKING_PARTS,
    "opening": OPENING,
    "thinking_in_prompt": FULL + "{'thinking': true}",
    "xml_tools": XML_TOOLS,
    "late_rules": LATE_RULES,
    "needs_question": NEEDS_QUESTION,
    "no_empty_answers": NO_EMPTY_ANSWERS,
    "no_call_at_end": NO_CALL_AT_END,
    "rules_in_question": RULES_IN_QUESTION,
    "object_arguments": OBJECT_ARGUMENTS,
    "tools_in_words": TOOLS_IN_WORDS,
    "endless_types": ENDLESS_TYPES,
    "nameless": NAMELESS,
}
DIALECTS = {name: ChatDialect(byte_vocabulary(), ChatTemplate(template), []) for name, template in TEMPLATES.items()}
NO_FORMAT = ChatDialect(byte_vocabulary(), ChatTemplate(PLAIN), [], OutputFormat())

OSLO, ROME = function_call("call_a", '{"city": "Oslo"}'), function_call("call_b", '{"city": "Rome"}')
RAIN, SUN = call_output("call_a", "rain"), call_output("call_b", "sun")
HERMES_OSLO = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
CALL_OSLO = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
CALL_ROME = CALL_OSLO.replace("Oslo", "Rome")


def prompt(dialect: ChatDialect, *items: dict[str, Any], tools: Any = (), **how: Any) -> str:
    return dialect.token_text(dialect.render(Turn(items=items, today=TODAY, tools=tools, **how)))


@pytest.mark.parametrize(
    ("template", "items", "expected"),
    [
        ("plain", (user("?"), OSLO, RAIN), f"[user]?[assistant]{HERMES_OSLO}[tool]rain"),
        ("plain", (user("?"), assistant("I look."), OSLO), f"[user]?[assistant]I look.\n\n{HERMES_OSLO}"),
        (
            "strict_plain",
            (user("?"), OSLO, ROME, RAIN, SUN, user("!")),
            f"[user]?[assistant]{HERMES_OSLO}\n{HERMES_OSLO.replace('Oslo', 'Rome')}[user]<tool_response>\nrain\n</tool_response>\n\n"
            "<tool_response>\nsun\n</tool_response>\n\n!",
        ),
        (
            "no_outputs",
            (user("?"), OSLO, RAIN),
            f"[user]?[assistant](call call_a {CALL_OSLO})[user]<tool_response>\nrain\n</tool_response>",
        ),
        (
            "single",
            (user("?"), OSLO, ROME, RAIN, SUN),
            f"[user]?[assistant](call call_a {CALL_OSLO})[tool]rain[assistant](call call_b {CALL_ROME})[tool]sun",
        ),
        (
            "text_or_calls",
            (user("?"), assistant("I look."), OSLO, RAIN),
            f"[user]?[assistant]I look.[assistant](call call_a {CALL_OSLO})[tool]rain",
        ),
        (
            "strict_text_or_calls",
            (user("?"), assistant("I look."), OSLO, RAIN),
            f"[user]?[assistant]I look.\n\n{HERMES_OSLO}[user]<tool_response>\nrain\n</tool_response>",
        ),
        ("strict_text_or_calls", (user("?"), OSLO, RAIN), f"[user]?[assistant](call call_a {CALL_OSLO})[tool]rain"),
        (
            "strict_text_or_calls",
            (user("?"), user("!"), OSLO, RAIN, ROME, SUN, user("So?"), user("Now.")),
            f"[user]?\n\n![assistant](call call_a {CALL_OSLO})[tool]rain"
            f"[assistant]{HERMES_OSLO.replace('Oslo', 'Rome')}[user]<tool_response>\nsun\n</tool_response>\n\nSo?\n\nNow.",
        ),
        (
            "text_or_calls",
            (user("?"), user("!"), OSLO, RAIN, user("So?")),
            f"[user]?[user]![assistant](call call_a {CALL_OSLO})",
        ),
        (
            "short_ids",
            (user("?"), OSLO, RAIN),
            f"[user]?[assistant](call 05f49740f {CALL_OSLO})[tool]rain",
        ),
        ("short_ids", (user("?"), function_call("abcde1234", "{}")), "(call abcde1234 {"),
        (
            "id_for_name",
            (user("?"), OSLO, ROME, RAIN, SUN, function_call("call_c", "{}", "clock")),
            '[user]?[assistant](call functions.get_weather:0 {"city": "Oslo"})(call functions.get_weather:1 {"city": "Rome"})'
            "[get_weather]functions.get_weather:0rain[get_weather]functions.get_weather:1sun"
            "[assistant](call functions.clock:2 {})",
        ),
        ("json_arguments", (user("?"), OSLO), '(call call_a get_weather {"city": "Oslo"})'),
        ("written_arguments", (user("?"), OSLO), '(call call_a get_weather {"city": "Oslo"})'),
        ("other_key", (user("?"), reasoning("Hm."), OSLO), "[assistant]Hm.(call"),
        ("thinking_parts", (user("?"), reasoning("Hm."), assistant("So."), OSLO), "[assistant][THINK]Hm.[/THINK]So.(call"),
        ("thinking_parts", (user("?"), reasoning("Hm."), OSLO), "[assistant][THINK]Hm.[/THINK](call"),
        ("opening", (user("?"), reasoning("Hm."), OSLO), "[assistant]<think>\nHm.\n</think>\n\n(call"),
        ("dropped_reasoning", (user("?"), reasoning("Hm."), OSLO), "[assistant]<think>\nHm.\n</think>\n\n(call"),
        (
            "removed_reasoning",
            (user("?"), reasoning("Hm."), assistant("So."), OSLO),
            "[assistant]<think>\nHm.\n</think>\n\nSo.(call",
        ),
        ("opening", (user("?"), reasoning("Hm."), assistant("So."), user("!")), "[user]?[assistant]So.[user]!<think>"),
    ],
)
def test_an_input_without_a_place_takes_another_form(template: str, items: tuple[Any, ...], expected: str) -> None:
    assert expected in prompt(DIALECTS[template], *items)


NOTE: dict[str, Any] = {"type": "object", "properties": {"note": {"type": ["string", "null"]}}, "required": ["note"]}


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ({}, "(report: )"),
        ({"description": "Tells."}, "(report: Tells.)"),
        ({"parameters": {"type": "object"}}, "(report: )"),
        ({"parameters": NOTE}, "(report:  note string )"),
        ({"parameters": {"properties": {"note": {"type": "object", "description": "N"}}}}, "(report:  note object N)"),
    ],
)
def test_fields_that_a_tool_lacks_are_empty_where_the_template_needs_these(tool: dict[str, Any], expected: str) -> None:
    tools = [{"type": "function", "name": "report", **tool}]
    assert prompt(DIALECTS["tools_in_words"], user("?"), tools=tools) == f"{expected}[user]?"
    function = {"name": "report", **tool}
    assert (
        prompt(DIALECTS["full"], user("?"), tools=tools) == f"{json.dumps([{'type': 'function', 'function': function}])}[user]?"
    )


def test_a_type_that_may_be_null_is_described_where_the_template_does_not_end_with_it() -> None:
    text = prompt(DIALECTS["endless_types"], user("?"), tools=[{"type": "function", "name": "report", "parameters": NOTE}])
    assert text.endswith('"properties": {"note": {"type": "string"}}, "required": ["note"]}}}str[user]?')


@pytest.mark.parametrize("arguments", ['{"city": "Os', '["Oslo"]', "Oslo"])
def test_arguments_that_are_no_object_are_a_parameter_where_the_template_takes_objects_alone(arguments: str) -> None:
    items = (user("?"), OSLO, function_call("call_b", arguments), RAIN, call_output("call_b", "invalid"))
    for tools in ((), (WEATHER,)):
        text = prompt(DIALECTS["object_arguments"], *items, tools=tools).partition("[user]")[2]
        oslo, other = "<city>Oslo</city>", f"<arguments>{arguments}</arguments>"
        assert text == (f"?[assistant](call call_a get_weather{oslo})(call call_b get_weather{other})[tool]rain[tool]invalid")
    assert f'"arguments": {json.dumps(arguments)}' in prompt(DIALECTS["full"], *items)


@pytest.mark.parametrize("template", ["needs_question", "rules_in_question"])
def test_a_system_message_without_a_question_is_the_question(template: str) -> None:
    rules = {**user("List three cities."), "role": "developer"}
    assert prompt(DIALECTS[template], rules, instructions="Be brief.") == "[user]Be brief.\n\nList three cities."
    assert "[user]Be brief." in prompt(DIALECTS[template], OSLO, RAIN, instructions="Be brief.")
    assert prompt(DIALECTS["full"], rules) == "[system]List three cities."


def test_calls_of_which_the_template_drops_the_names_are_written_as_text() -> None:
    text = prompt(DIALECTS["nameless"], user("?"), OSLO, RAIN, tools=(WEATHER,))
    assert text.endswith(f"[user]?[assistant]{HERMES_OSLO}[tool]rain")


def test_a_system_message_that_the_template_drops_before_outputs_joins_the_last_question() -> None:
    items = (user("?"), assistant("So."), user("!"), OSLO, RAIN)
    loop, rules = prompt(DIALECTS["late_rules"], *items, instructions="Be brief."), "Be brief.\n\n"
    assert loop == f"[user]?[assistant]So.[user]{rules}![assistant](call call_a {CALL_OSLO})[tool]rain"
    assert loop.startswith(prompt(DIALECTS["late_rules"], *items[:3], instructions="Be brief."))
    answered = prompt(DIALECTS["late_rules"], *items[:2], instructions="Be brief.")
    assert answered == f"[user]{rules}?[assistant]So."


def test_an_answer_of_reasoning_alone_is_left_out_where_the_template_rejects_it() -> None:
    items = [user("?"), reasoning("Hm."), user("!")]
    assert prompt(DIALECTS["no_empty_answers"], *items) == "[user]?[user]!"
    assert prompt(DIALECTS["full"], *items) == "[user]?[assistant]Hm.[user]!"


def test_an_empty_question_stands_behind_a_call_at_the_end_where_the_template_drops_the_call() -> None:
    called = f"[user]?[assistant](call call_a {CALL_OSLO})"
    assert prompt(DIALECTS["no_call_at_end"], user("?"), OSLO) == f"{called}[user]"
    assert prompt(DIALECTS["no_call_at_end"], user("?"), OSLO, RAIN) == f"{called}[tool]rain"
    assert prompt(DIALECTS["full"], user("?"), OSLO) == called


@pytest.mark.parametrize("template", ["plain", "no_tools", "hermes_no_tools", "strict_plain"])
def test_tools_without_a_place_are_described_in_the_system_message(template: str) -> None:
    text = prompt(DIALECTS[template], user("Hi"), tools=[WEATHER], instructions="Be brief.")
    first = text[: text.index("Hi")]
    assert "Be brief." in first
    assert '"name": "get_weather", "description": "Weather of a city."' in first
    assert '<tool_call>\n{"name": "TOOL_NAME", "arguments": {"PARAMETER_NAME": "VALUE"}}\n</tool_call>' in first


def test_calls_have_the_form_that_the_tools_are_described_with() -> None:
    assert HERMES_OSLO in prompt(DIALECTS["no_tools"], user("?"), OSLO, tools=[WEATHER])
    assert "(call call_a" in prompt(DIALECTS["no_tools"], user("?"), OSLO)


def test_tools_are_rendered_once_where_the_template_has_a_place() -> None:
    assert prompt(DIALECTS["full"], user("Hi"), tools=[WEATHER]).count("get_weather") == 1
    assert prompt(DIALECTS["xml_tools"], user("Hi"), tools=[WEATHER]).count('{"name": "get_weather"') == 1


@pytest.mark.parametrize(
    ("items", "tools", "param"),
    [((user("?"),), [WEATHER], "tools[0]"), ((user("?"), OSLO, RAIN), [], "input[1]")],
    ids=["tools", "calls"],
)
def test_calls_of_an_unknown_format_are_refused_without_a_place(items: Any, tools: Any, param: str) -> None:
    with pytest.raises(UnsupportedInput, match="has no place for") as caught:
        prompt(NO_FORMAT, *items, tools=tools)
    assert caught.value.param == param


@pytest.mark.parametrize(
    ("template", "remarks"),
    [
        ("full", []),
        ("chatml", []),
        ("thinking_in_prompt", []),
        ("plain", ["tools: described in the system message", "calls of earlier turns: as text"]),
        ("no_outputs", ["outputs of calls: as user messages"]),
        ("single", ["several calls of a turn: a message for each"]),
        ("text_or_calls", ["text beside a call: in a message before"]),
        (
            "strict_text_or_calls",
            ["questions in a row: in one user message", "text beside a call: with the call as text"],
        ),
        ("short_ids", ["call ids: shortened to 9 characters"]),
        ("id_for_name", ["call ids: with the names of the functions"]),
        ("other_key", ["reasoning before a call: as thinking"]),
        (
            "tools_in_words",
            [
                "tools that lack fields: with empty description, parameters, properties, descriptions of parameters",
                "types of parameters: without null",
                "parameters of any type: with an empty schema",
            ],
        ),
        ("late_rules", ["system message before outputs: in the last user message"]),
        ("no_empty_answers", ["answers of reasoning alone: left out"]),
        ("no_call_at_end", ["a call at the end: with an empty user message behind"]),
    ],
)
def test_changes_are_named(template: str, remarks: list[str]) -> None:
    assert list(DIALECTS[template].fit.remarks()) == remarks


ARGUMENTS = {"city": 'Oslo "<b>"', "days": 3, "tags": ["a", "b"], "place": {"name": "Å"}}
WRITTEN = {
    "deepseek_v31": "<｜tool▁call▁begin｜>report<｜tool▁sep｜>{JSON}<｜tool▁call▁end｜>",
    "granite": '<|tool_call|>[{"name": "report", "arguments": {JSON}}]',
    "lfm2": "<|tool_call_start|>[report(city=\"Oslo \\\"<b>\\\"\", days=3, tags=[\"a\", \"b\"], place={\"name\": \"Å\"})]<|tool_call_end|>",
    "mistral": "[TOOL_CALLS]report[ARGS]{JSON}",
    "qwen3_coder": "<function=report>\n<parameter=city>\nOslo \"<b>\"\n</parameter>\n<parameter=days>\n3\n</parameter>",
}  # fmt: skip


@pytest.mark.parametrize(("name", "expected"), WRITTEN.items())
def test_calls_are_written_in_the_format_of_the_model(name: str, expected: str) -> None:

    written = write_calls(CALLS[name].syntax, [{"name": "report", "arguments": ARGUMENTS}])
    assert expected.replace("{JSON}", json.dumps(ARGUMENTS, ensure_ascii=False)) in written


def test_a_declared_format_describes_the_tools() -> None:
    dialect = ChatDialect(byte_vocabulary(), ChatTemplate(PLAIN), [], OutputFormat(calls=CALLS["deepseek_v31"]))
    text = prompt(dialect, user("?"), OSLO, tools=[WEATHER])
    assert text.count("<｜tool▁call▁begin｜>") == 2
    assert 'get_weather<｜tool▁sep｜>{"city": "Oslo"}' in text


def test_calls_between_one_pair_of_markers_stay_in_a_message_where_the_template_describes_no_tools() -> None:
    # As the template of DeepSeek V3.1.
    call = "{{ '<｜tool▁call▁begin｜>' + call.function.name + '<｜tool▁sep｜>' + call.function.arguments | tojson }}<｜tool▁call▁end｜>"
    calls = "<｜tool▁calls▁begin｜>{% for call in message.tool_calls %}" + call + "{% endfor %}<｜tool▁calls▁end｜>"
    body = "{{ message.content }}{% if message.tool_calls %}" + calls + "{% endif %}"
    output = OutputFormat(calls=CALLS["deepseek_v31"])
    dialect = ChatDialect(byte_vocabulary(), ChatTemplate(TURNS.replace("BODY", body)), [], output)
    text = prompt(dialect, user("?"), OSLO, ROME, RAIN, SUN, tools=[WEATHER]).partition("[user]")[2]
    assert text.count("<｜tool▁calls▁begin｜>") == 1
    assert '{"city": "Oslo"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Rome"}' in text
    assert text.endswith("<｜tool▁calls▁end｜>[tool]rain[tool]sun")


WORD = st.integers(0, 10**6).map(lambda number: f"w{number:07}w")


@st.composite
def rounds(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw a round of a tool loop: reasoning, text, calls and outputs."""
    items = [reasoning(draw(WORD))] if draw(st.booleans()) else []
    items += [assistant(draw(WORD))] if draw(st.booleans()) else []
    ids = draw(st.lists(WORD, min_size=1, max_size=3, unique=True))
    items += [function_call(f"call_{each}", f'{{"city": "{draw(WORD)}"}}') for each in ids]
    return [*items, *(call_output(f"call_{each}", draw(WORD)) for each in ids)]


@st.composite
def turns(draw: st.DrawFn) -> Turn:
    """Draw a conversation that ends in a tool loop, or in a question."""
    items: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(0, 2))):
        items += [
            user(draw(WORD)),
            *(each for loop in draw(st.lists(rounds(), max_size=2)) for each in loop),
            assistant(draw(WORD)),
        ]
    items += [user(draw(WORD)), *(each for loop in draw(st.lists(rounds(), max_size=2)) for each in loop)]
    tools = draw(st.sampled_from([[], [WEATHER], [WEATHER, CLOCK]]))
    return Turn(items=items, today=TODAY, tools=tools, instructions=draw(st.sampled_from([None, "w_rules_w"])))


def _texts(turn: Turn, dialect: ChatDialect) -> list[str]:
    """Return every text of a turn, the reasoning of earlier turns only where the template has a place for all reasoning."""
    texts = [
        turn.instructions or "",
        *(str(tool["name"]) for tool in turn.tools),
        *(str(tool.get("description", "")) for tool in turn.tools),
    ]
    last_question = max(index for index, item in enumerate(turn.items) if item.get("role") == "user")
    for index, item in enumerate(turn.items):
        if item["type"] == "reasoning":
            is_rendered = index > last_question if dialect.fit.reasoning_key == MARKED_TEXT else _has_place(dialect)
            texts += [part["text"] for part in item["content"]] if is_rendered else []
        elif item["type"] == "message":
            texts += [part["text"] for part in item["content"]]
        else:
            texts.append(str(item.get("output") or item["arguments"].split('"')[3]))
    return texts


def _has_place(dialect: ChatDialect) -> bool:
    """Return True if the template has a place for all reasoning."""
    return dialect.fit.reasoning_key not in ("content", None)


@pytest.mark.parametrize("template", TEMPLATES)
@given(turn=turns())
def test_nothing_is_dropped(template: str, turn: Turn) -> None:
    dialect = DIALECTS[template]
    try:
        text = dialect.token_text(dialect.render(turn))
    except UnsupportedInput:
        return
    assert [each for each in _texts(turn, dialect) if each not in text] == []


@pytest.mark.parametrize("template", TEMPLATES)
@given(turn=turns())
def test_nothing_is_refused(template: str, turn: Turn) -> None:
    dialect = DIALECTS[template]
    assert dialect.render(turn)


# The template of Mistral Nemo: no text beside calls, roles that alternate, and outputs in a form of their own.
MISTRAL = ALTERNATING + (
    "{% for message in messages %}"
    "{% if message.role == 'user' %}{{ ('[TOOLS]' if tools and loop.last) ~ '[INST]' ~ message.content ~ '[/INST]' }}"
    "{% elif message.role == 'tool' %}{{ '[TOOL_RESULTS]' ~ message.content ~ '[/TOOL_RESULTS]' }}"
    "{% elif message.tool_calls %}{{ '[TOOL_CALLS][' }}"
    "{% for call in message.tool_calls %}{{ call.function | tojson }}{% endfor %}{{ ']</s>' }}"
    "{% else %}{{ message.content ~ '</s>' }}{% endif %}{% endfor %}{{ '' if not tools else tools | tojson }}"
)


@pytest.mark.parametrize("text", ["Let me look.", 'A "quote" \\1 [TOOL_CALLS]?'])
def test_text_beside_a_call_stands_before_the_marker_of_the_call_and_the_output_keeps_its_form(text: str) -> None:
    dialect = ChatDialect(byte_vocabulary(), ChatTemplate(MISTRAL), [0], OutputFormat(None, CALLS["mistral"]))
    items = (user("Hi"), assistant(text), function_call("a", '{"city": "Oslo"}'), call_output("a", "clear"))
    with_text, without = (
        dialect.token_text(dialect.render(Turn(items=each, today=TODAY, tools=(WEATHER,))))
        for each in (items, (items[0], *items[2:]))
    )
    assert "[/INST][TOOL_CALLS][" in without
    assert without.count("[TOOL_RESULTS]clear[/TOOL_RESULTS]") == 1
    assert with_text == without.replace("[/INST][TOOL_CALLS][", f"[/INST]{text}[TOOL_CALLS][")
    more = (
        *items,
        assistant("Done."),
        user("Again"),
        assistant(text),
        function_call("b", '{"city": "Rome"}'),
        call_output("b", "rain"),
    )
    twice = dialect.token_text(dialect.render(Turn(items=more, today=TODAY, tools=(WEATHER,))))
    assert twice.count(f"[/INST]{text}[TOOL_CALLS][") == 2
    assert "text beside a call: before the marker of the call" in dialect.fit.remarks()


DEFAULT_RULES = (
    "{{ '<sys>Date.\n' ~ (messages[0].content if messages[0].role == 'system' else "
    "('Think well.' if enable_thinking else 'You are Smol.')) ~ '</sys>' }}"
    "{% for message in messages if message.role != 'system' %}[{{ message.role }}]{{ message.content }}{% endfor %}"
)


@pytest.mark.parametrize(("effort", "rules"), [(None, "Think well."), ("none", "You are Smol.")])
def test_described_tools_keep_the_default_system_message_of_the_template(effort: Any, rules: str) -> None:
    dialect = ChatDialect(byte_vocabulary(), ChatTemplate(DEFAULT_RULES), [0])
    text = prompt(dialect, user("Hi"), tools=(WEATHER,), effort=effort)
    assert text.startswith(f"<sys>Date.\n{rules}\n\nYou can call tools.")
    assert prompt(dialect, user("Hi"), effort=effort).startswith(f"<sys>Date.\n{rules}</sys>")
    named = prompt(dialect, user("Hi"), tools=(WEATHER,), effort=effort, instructions="Be brief.")
    assert named.startswith("<sys>Date.\nBe brief.\n\nYou can call tools.")


def test_tools_in_the_notation_of_python_leave_the_calls_in_place() -> None:
    template = ChatTemplate(FULL.replace("tools | tojson", "tools | string"))
    vocabulary = byte_vocabulary()
    fit = ChatDialect(vocabulary, template, []).fit
    assert (fit.tools, fit.calls, fit.outputs) == (True, True, True)


def test_a_template_that_drops_the_reasoning_between_calls_by_default_shows_it() -> None:
    # As the template of Hunyuan Hy3.
    thought = "{{ '<think>' + (message.reasoning_content or '' if interleaved_thinking else '') + '</think>' }}"
    shown = "{% if message.role == 'assistant' %}" + thought + "{% endif %}{{ message.content }}" + CALLS_OF
    dialect = ChatDialect(byte_vocabulary(), ChatTemplate(TOOLS + TURNS.replace("BODY", shown)), [0])
    text = prompt(dialect, user("Hi"), reasoning("Hm."), function_call("c1", "{}"), call_output("c1", "Sun"), tools=(WEATHER,))
    assert "<think>Hm.</think>(call" in text
    assert text.count("<think>") == 1
