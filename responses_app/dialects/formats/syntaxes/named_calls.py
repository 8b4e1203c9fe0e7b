"""Calls written as a name before a JSON object, each between special tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from responses_app.dialects.constraints.structural_tag import Format, arguments, literal, one_of, regex, sequence, tag, tags
from responses_app.dialects.formats.base import NAME, SectionSyntax, Tool
from responses_app.dialects.formats.calls import CallWriter, NotACall
from responses_app.dialects.formats.reader import EndOfText, Markers, Reader, Steps
from responses_app.dialects.formats.syntaxes.json_calls import JsonCalls

# Id of a call: a number, or letters and digits.
_ID = one_of([literal("0"), regex(r"[\w\-]{1,40}")])


@dataclass(frozen=True, slots=True)
class NamedCalls(SectionSyntax):
    """Section of calls `call_begin` name `argument_begin` JSON `call_end`, between `begin` and `end`.

    Without `end` each call is a section. `prefix` stands before a name, a number behind `index_separator`. With `fenced` the
    head is `function`, and the name and a fenced block of JSON follow `argument_begin`. With `name_begin` an id stands before the name,
    with `id_begin` behind it. `call_end` may have the name, in the place of `NAME`. With `needs_declared` only calls of declared tools
    are calls. The prompt may end with `opening`, the beginning of the first call.
    White space around these texts is that of the grammar.
    """

    begin: str
    end: str
    call_begin: str
    argument_begin: str
    call_end: str
    prefix: str = ""
    index_separator: str = ""
    fenced: bool = False
    name_begin: str = ""
    id_begin: str = ""
    # Text between two calls of a section.
    separator: str = ""
    needs_declared: bool = False
    opening: str = ""

    def read(self, reader: Reader, calls: CallWriter, begin: str) -> Steps[None]:
        """Read calls up to the end of the section, or to other text. Raises NotACall, EndOfText."""
        # A call may have other beginnings.
        marker: str | None = self.call_begin.strip()
        if self.needs_declared:
            yield from reader.accept(begin)
            yield from self._call(reader, calls)
            return
        if begin == self.begin.strip():
            yield from reader.skip_space()
            marker = yield from reader.accept(*self._nexts)
        if marker is None:
            raise NotACall
        while marker == self.call_begin.strip():
            yield from self._call(reader, calls)
            yield from reader.skip_space()
            if separator := self.separator.strip():
                yield from reader.accept(separator)
                yield from reader.skip_space()
            marker = yield from reader.accept(*self._nexts)

    @property
    def _nexts(self) -> tuple[str, ...]:
        """Markers of the next call, and of the end of the section."""
        call_begin, end = self.call_begin.strip(), self.end.strip()
        return (call_begin, end) if end else (call_begin,)

    @property
    def markers(self) -> tuple[str, ...]:
        """Markers inside of calls."""
        ends = self.call_end.split(NAME)
        texts = (self.begin, self.end, self.call_begin, self.argument_begin, *ends, self.name_begin, self.id_begin)
        return tuple(text.strip() for text in texts)

    @property
    def trigger(self) -> str:
        """Text with which calls begin in the grammar."""
        return ((self.begin if self.end else "") or self.call_begin).strip()

    def tags(self, tools: Sequence[Tool], *, only_one: bool) -> list[Format]:
        """Return the tag of a section, or tags of calls, with or without the beginning of a section that has no end."""
        one = [self._tag(tool) for tool in tools]
        if self.opening:
            one += [{**each, "begin": each["begin"].removeprefix(self.opening)} for each in one]
        if not self.end:
            return [*one, *({**each, "begin": self.begin + each["begin"]} for each in one if self.begin)]
        return [tag(self.begin, tags(one, "\n" if self.fenced else self.separator, only_one=only_one), self.end)]

    def _tag(self, tool: Tool) -> Format:
        name, values = str(tool["name"]), self._values(tool)
        if self.fenced:
            return tag(f"{self.call_begin}function{self.argument_begin}{name}\n```json\n", values, self._tail(name))
        if self.name_begin:
            content = sequence(_ID, literal(f"{self.name_begin}{name}{self.argument_begin}"), values)
            return tag(self.call_begin, content, self._tail(name))
        if self.id_begin:
            content = sequence(literal(self.id_begin), _ID, literal(self.argument_begin), values)
            return tag(f"{self.call_begin}{name}", content, self._tail(name))
        if not self.index_separator:
            return tag(f"{self.call_begin}{self.prefix}{name}{self.argument_begin}", values, self._tail(name))
        content = sequence(one_of([literal("0"), regex(r"\d{1,4}")]), literal(self.argument_begin), values)
        return tag(f"{self.call_begin}{self.prefix}{name}{self.index_separator}", content, self._tail(name))

    def _values(self, tool: Tool) -> Format:
        return arguments(dict(tool))

    def _tail(self, name: str) -> str:
        call_end = self.call_end.replace(NAME, name)
        return f"\n```{call_end}" if self.fenced else call_end

    def _call(self, reader: Reader, calls: CallWriter) -> Steps[None]:
        call_end = self.call_end.partition(NAME)[0].strip()
        argument_begin = self.argument_begin.strip() or self.argument_begin
        # What ends the name and the arguments besides; a single character may stand in the arguments.
        others = self._nexts if not self.needs_declared else ()
        yield from reader.skip_space()
        head_ends = Markers(argument_begin, call_end, *(others or (" ", "\n", "<", "[")), may_overlap=True)
        if self.name_begin and self.name_begin in self.argument_begin:
            # The text that ends the name ends the id too.
            yield from reader.read_until(head_ends)
        head, stop = yield from reader.read_until(head_ends)
        if stop != argument_begin or (self.needs_declared and not calls.is_declared(head)):
            raise NotACall
        kind = ""
        if self.fenced:
            kind = head.strip().removeprefix("function")
            head, stop = yield from reader.read_until(Markers("\n", "```", "{"))
            reader.at -= len(stop)
            yield from reader.skip_space()
            yield from reader.accept("```json", "```")
        yield from reader.skip_space()
        name = self._name(head)
        call_end = self.call_end.replace(NAME, name).strip()
        if self.needs_declared and (yield from reader.peek()) != "{":
            raise NotACall
        calls.open(name)
        calls.add_misplaced(kind)
        # A brace behind the arguments may be their own.
        stops = Markers(*(each for each in (call_end, *others) if not each.startswith("}")))
        yield from self._pass_arguments(reader, calls, stops)
        calls.close()
        yield from reader.skip_space("`" if self.fenced else "")
        yield from reader.accept(call_end)
        calls.commit()

    def _pass_arguments(self, reader: Reader, calls: CallWriter, stops: Markers) -> Steps[None]:
        yield from reader.pass_json(stops, calls.write)

    def _name(self, head: str) -> str:
        name = head.rpartition(self.name_begin)[2].strip() if self.name_begin else head.strip()
        name = name.partition(self.id_begin)[0].strip() if self.id_begin else name
        if self.index_separator:
            before, _, index = name.rpartition(self.index_separator)
            name = before if before and index.strip().isdigit() else name
        return name.removeprefix(self.prefix)


_MISTRAL_LIST = JsonCalls(begin="[", end="]", has_ids=True)
_CALL_ID = one_of([literal(""), sequence(literal("[CALL_ID]"), regex(r"[a-zA-Z0-9]{9}"))])
_HEAD_ENDS = Markers("[CALL_ID]", "[ARGS]", "{")


@dataclass(frozen=True, slots=True)
class MistralCalls(SectionSyntax):
    """Calls of Mistral models, old and new.

    New: `[TOOL_CALLS]name[ARGS]{...}` with an optional `[CALL_ID]id`, also without `[ARGS]`. Old: `[TOOL_CALLS][{...}, {...}]`.
    """

    is_list: bool

    def read(self, reader: Reader, calls: CallWriter, begin: str) -> Steps[None]:
        """Read a call of the new form, or a list of the old form. Raises NotACall, EndOfText."""
        yield from reader.skip_space()
        if (yield from reader.peek()) in "[{":
            yield from _MISTRAL_LIST.read(reader, calls, begin)
            return
        try:
            name, stop = yield from reader.read_until(_HEAD_ENDS)
        except EndOfText:
            self._end(reader, calls)
            raise
        if stop == "[CALL_ID]":
            _, stop = yield from reader.read_until(Markers("[ARGS]", "{"))
        reader.at -= stop == "{"
        if (yield from reader.peek()) != "{":
            raise NotACall
        calls.open(name.strip())
        yield from reader.pass_json(Markers("[TOOL_CALLS]"), calls.write)
        calls.close()

    def _end(self, reader: Reader, calls: CallWriter) -> None:
        """Handle the end of the generation behind a name: the name of a declared tool is a call without arguments."""
        if not reader.cut and calls.is_declared(reader.unfinished.strip()):
            calls.open(reader.unfinished.strip())
            reader.unfinished = ""
            calls.write("{}")

    @property
    def markers(self) -> tuple[str, ...]:
        """Markers inside of calls."""
        return ("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]")

    @property
    def trigger(self) -> str:
        """Text with which calls begin in the grammar."""
        return "[TOOL_CALLS]"

    def tags(self, tools: Sequence[Tool], *, only_one: bool) -> list[Format]:
        """Return the tags of the calls, or of a list of the old form."""
        if self.is_list:
            listed = _MISTRAL_LIST.tags(tools, only_one=only_one)
            return [tag("[TOOL_CALLS]", sequence(regex(" ?"), *listed), "")]
        return [self._tag(tool) for tool in tools]

    def _tag(self, tool: Tool) -> Format:
        content = sequence(_CALL_ID, literal("[ARGS]"), arguments(dict(tool)))
        return tag(f"[TOOL_CALLS]{tool['name']}", content, "")
