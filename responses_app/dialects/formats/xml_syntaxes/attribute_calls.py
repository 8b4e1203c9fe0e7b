"""Calls written as a tag with an attribute for each parameter, as `<call name="get_weather" city="Paris"/>`."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass

from responses_app.dialects.constraints.structural_tag import Format, any_text, literal, sequence, tag
from responses_app.dialects.formats.base import NAME, Tool
from responses_app.dialects.formats.calls import CallWriter, NotACall, json_string_part, written_object
from responses_app.dialects.formats.reader import EndOfText, Markers, Reader, Steps
from responses_app.dialects.formats.syntaxes.grammar import Parameter, parameters, separated, text_value, value
from responses_app.dialects.formats.values import is_text, to_json
from responses_app.dialects.formats.xml_syntaxes.element_calls import ElementCalls, first_tag, skip_rest

# Value without quotes that is no JSON.
_WORD = re.compile(r"[^\s\"'\[{][^\s>]*?(?=\s|/?>)")
_JSON = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class AttributeCalls(ElementCalls):
    """Calls `call_begin` name `name_end`, an attribute for each parameter, and `call_end`.

    The values stand between quotes, `value_end`, which a value may have too: an attribute or the end of the call follows the
    last one. Without a quote the values are JSON.
    """

    def _call(self, reader: Reader, calls: CallWriter) -> Steps[None]:
        name, is_empty = yield from self._tool_name(reader)
        if self.needs_declared and not calls.is_declared(name):
            raise NotACall
        calls.open(name)
        end = self.call_end.replace(NAME, name)
        with written_object(reader, calls.write) as writer:
            while not is_empty:
                yield from reader.skip_space()
                if (yield from reader.accept(first_tag(end))):
                    break
                key, stop = yield from reader.read_until(Markers("=", first_tag(end), may_overlap=True))
                if stop != "=":
                    calls.add_misplaced(key)
                    break
                writer.key(key.strip())
                schema = calls.properties(name).get(key.strip())
                yield from reader.skip_space()
                if self.value_end:
                    yield from self._quoted(reader, calls, schema, first_tag(end))
                else:
                    yield from _json(reader, calls, schema)
            yield from skip_rest(reader, end)
        calls.close()

    def _tool_name(self, reader: Reader) -> Steps[tuple[str, bool]]:
        """Read the name; return it, and True if the call ends there. Raises NotACall, EndOfText."""
        yield from reader.skip_space()
        end = first_tag(self.call_end.partition(NAME)[0])
        ends = (self.name_end,) if self.name_end else (" ", end)
        name, stop = yield from reader.read_until(Markers(*ends, "\n", "<", "{", may_overlap=True))
        if stop not in ends or not name or " " in name:
            raise NotACall
        return name, not self.name_end and stop == end

    def _quoted(self, reader: Reader, calls: CallWriter, schema: object, end: str) -> Steps[None]:
        """Read a value between quotes. At the end of the generation the value ends too, unless cut off. Raises EndOfText."""
        quote, parts, is_string = self.value_end, list[str](), is_text(schema)
        yield from reader.accept(quote)
        value_end = re.compile(rf"{quote}(?=\s*{re.escape(end)}|\s+[\w.-]+=)")
        calls.write('"' if is_string else "")

        def emit(text: str) -> None:
            if is_string:
                calls.write(json_string_part(text))
            else:
                parts.append(text)

        while (match := value_end.search(reader.text, reader.at)) is None:
            # The text before the next quote is certain.
            at = reader.unread.find(quote)
            emit(reader.take(len(reader.unread) if at < 0 else at))
            try:
                yield from reader.wait()
            except EndOfText:
                if reader.cut:
                    reader.unfinished = "".join(parts)
                    raise
                emit(reader.take(len(reader.unread)).rstrip().removesuffix(quote))
                break
        else:
            emit(reader.take(match.start() - reader.at))
            reader.at = match.end()
        calls.write('"' if is_string else to_json(html.unescape("".join(parts)), schema))

    # Grammar

    def _tag(self, tool: Tool) -> Format:
        name, tool_parameters = str(tool["name"]), parameters(tool)
        end = self.call_end.replace(NAME, name)
        if tool_parameters is None:
            content = any_text(end.strip())
        else:
            elements = [self._element(each, end) for each in tool_parameters]
            content = separated(elements, "", [each.is_required for each in tool_parameters]) if elements else literal("")
        ends = (end,) if self.begin or not self.call_separator else (end + self.call_separator, end)
        return tag(f"{self.call_begin}{name}{self.name_end}", content, *ends)

    def _element(self, parameter: Parameter, call_end: str) -> Format:
        del call_end
        begin = f"{self.key_begin}{parameter.name}{self.key_end}"
        if self.value_end and is_text(parameter.schema):
            return tag(begin, text_value(parameter.schema, self.value_end), self.value_end)
        return sequence(literal(begin), value(parameter.schema), literal(self.value_end))


def _json(reader: Reader, calls: CallWriter, schema: object) -> Steps[None]:
    """Read a value of JSON, or a word. Raises EndOfText."""
    while True:
        text = reader.unread
        try:
            _, end = _JSON.raw_decode(text)
        except (ValueError, RecursionError):
            word = _WORD.match(text)
            end = word.end() if word else 0
        # More digits may follow a number.
        if end and (end < len(text) or text[0] in '"[{' or (reader.closed and not reader.cut)):
            calls.write(to_json(reader.take(end), schema) if text[0] not in '"[{' else reader.take(end))
            return
        yield from reader.wait()
