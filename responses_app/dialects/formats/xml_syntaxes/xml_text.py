"""Text of XML calls: attributes of start tags, and the inside of string values."""

from __future__ import annotations

import re
from collections.abc import Mapping

from responses_app.dialects.formats.calls import CallWriter, json_string_part

_ATTRIBUTE = re.compile(r"""(\w+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+))""")
_KNOWN_ATTRIBUTES = {
    "string": ("true", "false"),
    "type": ("string", "integer", "number", "boolean", "null", "object", "array", "json"),
}


def attribute_name(head: str) -> str:
    """Return the value of the first attribute of a start tag, whose beginning `name=` is left out."""
    match = _ATTRIBUTE.match(f"name={head.strip()}")
    return next((each for each in match.groups()[1:] if each), "") if match else ""


def attributes_of(head: str) -> Mapping[str, str]:
    """Return the attributes with double quotes of a start tag by name."""
    return {match[1]: match[2] for match in _ATTRIBUTE.finditer(head)}


def unknown_attributes(head: str) -> str:
    """Return the text of a start tag other than known attributes."""
    return _ATTRIBUTE.sub(_unless_known, f"name={head.strip()}")


def _unless_known(attribute: re.Match[str]) -> str:
    """Return the text of an unknown attribute."""
    key, value = attribute[1], attribute[2] or ""
    is_known = value in _KNOWN_ATTRIBUTES.get(key, ()) or (key == "index" and value.isdigit())
    return "" if attribute.start() == 0 or is_known else attribute[0]


class StringPart:
    """Writer of the inside of a JSON string. With `pads` a line break at the start is left out, and then also at the end."""

    def __init__(self, calls: CallWriter, *, pads: bool) -> None:
        self._calls = calls
        self._pads = pads
        self._is_first = True
        self._held = ""

    def write(self, text: str) -> None:
        """Write text, except a line break that may be the last character."""
        text = self._held + text
        self._held = ""
        if self._is_first and text:
            self._pads = self._pads and text.startswith("\n")
            text = text.removeprefix("\n") if self._pads else text
            self._is_first = False
        if self._pads and text.endswith("\n"):
            text, self._held = text[:-1], "\n"
        self._calls.write(json_string_part(text))

    def end(self) -> None:
        """End the string: the line break held back is no part of the value."""
        self._held = ""
