"""Tools with schemas that some chat templates fail at: the schemas have the form that the template describes."""

from __future__ import annotations

from typing import Any

import pytest

from responses_app.dialects.chat.dialect import ChatDialect
from responses_app.dialects.chat.template import ChatTemplate
from tests.support.dialects.parser_driver import byte_vocabulary, turn, user

# As Command R+, which describes the values of objects.
VALUES = (
    "{% macro named(schema) %}{% if schema.type == 'object' %}{{ 'dict of ' ~ named(schema.additionalProperties) }}"
    "{% elif schema.type is string %}{{ schema.type }}{% else %}{{ schema.type | join(' or ') }}{% endif %}{% endmacro %}"
    "{% for tool in tools or [] %}{{ tool.function.name }} {{ tool.function.description }}"
    "{% for name, each in tool.function.parameters.properties.items() %} {{ name }}: {{ named(each) }};{% endfor %}"
    "{% endfor %}{% for message in messages %}[{{ message.role }}]{{ message.content }}{% endfor %}"
)
# As GigaChat.
KEYS = (
    "{% macro described(schema) %}{{ 'text' if 'description' in schema else 'none' }}"
    "{% if schema.get('items') %} of {{ described(schema.get('items')) }}{% endif %}"
    "{% for name, each in (schema.properties or {}).items() %} {{ name }}: {{ described(each) }};{% endfor %}{% endmacro %}"
    "{% for tool in tools or [] %}{{ tool.function.name }} {{ tool.function.description }} "
    "{{ described(tool.function.parameters) }}{% endfor %}"
    "{% for message in messages %}[{{ message.role }}]{{ message.content }}{% endfor %}"
)
JSON = "{{ tools | tojson if tools else '' }}{% for message in messages %}[{{ message.role }}]{{ message.content }}{% endfor %}"
TEXT = {"type": "string"}


def described(template: str, properties: dict[str, Any]) -> str:
    dialect = ChatDialect(byte_vocabulary(), ChatTemplate(template), [0])
    assert dialect.fit.tools
    parameters = {"type": "object", "properties": properties}
    tools = [{"type": "function", "name": "report", "description": "D.", "parameters": parameters}]
    return dialect.token_text(dialect.render(turn(user("?"), tools=tools)))


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (TEXT, "string"),
        ({"type": "object"}, "dict of "),
        ({"type": "object", "properties": {"a": TEXT, "b": TEXT}}, "dict of string"),
        ({"type": "object", "properties": {"a": TEXT, "b": {"type": "integer"}}}, "dict of string or integer"),
        ({"type": "object", "properties": {"a": TEXT, "b": {"type": "object"}}}, "dict of "),
        ({"type": "object", "properties": {"a": True}, "additionalProperties": False}, "dict of "),
        (
            {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": TEXT}},
            "dict of dict of string",
        ),
    ],
)
def test_objects_have_the_types_of_their_values_where_the_template_needs_these(schema: Any, expected: str) -> None:
    assert described(VALUES, {"place": schema}) == f"report D. place: {expected};[user]?"


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (True, "none"),
        (False, "none"),
        ({"type": "array", "items": True}, "none"),
        ({"properties": {"deep": True, "more": TEXT}}, "none deep: none; more: none;"),
    ],
)
def test_parameters_of_any_type_have_a_schema_where_the_template_needs_an_object(schema: Any, expected: str) -> None:
    assert described(KEYS, {"place": schema}) == f"report D. none place: {expected};[user]?"


def test_schemas_stay_as_they_are_where_the_template_takes_any() -> None:
    text = described(JSON, {"a": True, "b": {"type": "array", "items": True}, "c": {"type": "object"}})
    assert '"properties": {"a": true, "b": {"type": "array", "items": true}, "c": {"type": "object"}}' in text
