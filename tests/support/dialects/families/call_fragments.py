"""Jinja fragments that write a call or describe tools, shared by several families."""

from __future__ import annotations

from tests.support.dialects.families.family_format import literal

NAME = "{{- call.function.name }}"
ARGUMENTS = "{{- call.function.arguments | tojson }}"
TOOLS_JSON = "{{- tools | tojson }}"
_LOOP = "{%- for key, value in call.function.arguments.items() %}"
_VALUE = "{{- value if value is string else value | tojson }}"
_END = "{%- endfor %}"


def around(before: str, fragment: str, after: str) -> str:
    """Put literal text around a fragment."""
    return f"{literal(before)}{fragment}{literal(after)}"


def json_call(before: str = "", after: str = "", *, key: str = "arguments") -> str:
    """Write a call as a JSON object with `name` and `key`."""
    return around(before + '{"name": "', f"{NAME}{literal(f'{chr(34)}, {chr(34)}{key}{chr(34)}: ')}{ARGUMENTS}", "}" + after)


def tagged_call(before: str, after_name: str, argument: tuple[str, str, str], after: str) -> str:
    """Write a call with an element per argument; `argument` is the text before the key, the value, and after the value."""
    key = "{{- key }}"
    middle, end = literal(argument[1]), literal(argument[2])
    return f"{around(before, NAME, after_name)}{_LOOP}{literal(argument[0])}{key}{middle}{_VALUE}{end}{_END}{literal(after)}"


def python_call(before: str = "", after: str = "") -> str:
    """Write a call as Python."""
    value = "{{- value | tojson if value is string else value | string }}"
    comma = '{%- if not loop.last %}{{- ", " }}{%- endif %}'
    return f"{around(before, NAME, '(')}{_LOOP}{{{{- key }}}}{literal('=')}{value}{comma}{_END}{literal(')' + after)}"


def function_xml(before: str = "<tool_call>\n", after: str = "\n</tool_call>", *, line_break: str = "\n") -> str:
    """Write a call as `<function=…>` with `<parameter=…>`; `line_break` is around each value."""
    argument = ("<parameter=", f">{line_break}", f"{line_break}</parameter>\n")
    return tagged_call(before + "<function=", ">\n", argument, "</function>" + after)


def described(text: str) -> str:
    """Describe the format of calls beside the tools."""
    return literal(text + "\n") + TOOLS_JSON
