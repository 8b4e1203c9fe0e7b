"""Writer of tool calls found in the output."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from responses_app.dialects.formats.reader import EndOfText, Markers, Reader, Steps
from responses_app.dialects.formats.values import with_definitions
from responses_app.dialects.text.delta_buffer import ARGUMENTS, MESSAGE, DeltaBuffer
from responses_app.protocol.deltas import Call
from responses_app.protocol.output_problems import CALL_WITHOUT_NAME, TEXT_IN_CALL, TOOL_NOT_ALLOWED

# Characters as the inside of a JSON string.
_TEXTS = {"lt": "<", "gt": ">", "amp": "&", "quot": '\\"', "apos": "'", "#34": '\\"', "#39": "'", "#x27": "'"}
_ENTITY = re.compile(rf"&({'|'.join(_TEXTS)});")
_BEGINNING = re.compile(
    rf"&(?:{'|'.join(sorted({name[:size] for name in _TEXTS for size in range(len(name) + 1)}, reverse=True))})\Z"
)


class EntityDecoder:
    """Decodes entities in JSON that grows. Text that may be the beginning of an entity is held back."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """Return the text decoded so far."""
        text = self._held + text
        beginning = _BEGINNING.search(text)
        self._held = beginning[0] if beginning else ""
        return _ENTITY.sub(lambda entity: _TEXTS[entity[1]], text.removesuffix(self._held))

    def flush(self) -> str:
        """Return the text held back."""
        held, self._held = self._held, ""
        return held


# Names that a client may send back; other text in the place of a name is text.
_NAME = re.compile(r"[\w.\-:]{1,128}")


class NotACall(Exception):
    """The text is no call of a tool that may be called; `problem` is the type of the output problem."""

    def __init__(self, problem: str = TEXT_IN_CALL) -> None:
        super().__init__(problem)
        self.problem = problem


class CallWriter:
    """Writes calls to the delta buffer. Text read since the last complete call can be read again as text.

    `schemas` are the parameters of the declared tools by name. `end_item` ends the item before a call. After the first call
    with `one_call`, `done` is True. Text inside of a call that belongs neither to the name nor to the arguments becomes a message
    behind the call. With `has_entities` entities of XML in the arguments are decoded.
    """

    def __init__(
        self,
        reader: Reader,
        deltas: DeltaBuffer,
        allows: Callable[[str], bool],
        schemas: Mapping[str, Mapping[str, Any]],
        end_item: Callable[[], None],
        *,
        one_call: bool = False,
        has_entities: bool = False,
    ) -> None:
        self.is_open = self.done = self._has_called = False
        self._reader = reader
        self._deltas = deltas
        self._allows = allows
        self._schemas = schemas
        self._end_item = end_item
        self._one_call = one_call
        self._misplaced: list[str] = []
        self._entities = EntityDecoder() if has_entities else None

    @property
    def has_tools(self) -> bool:
        """Return True if the request declares tools."""
        return bool(self._schemas)

    def is_declared(self, name: str) -> bool:
        """Return True if the request declares a tool of this name."""
        return name in self._schemas

    def properties(self, name: str) -> Mapping[str, Any]:
        """Return the schemas of the parameters of a tool, empty if unknown."""
        schema = self._schemas.get(name, {})
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            return {}
        return {key: with_definitions(each, schema) for key, each in properties.items()}

    def open(self, name: str) -> None:
        """Begin a call. Raises NotACall, and EndOfText behind the only allowed call."""
        if self.done:
            raise EndOfText
        if not _NAME.fullmatch(name):
            raise NotACall(CALL_WITHOUT_NAME)
        if not self._allows(name):
            raise NotACall(TOOL_NOT_ALLOWED)
        self._end_item()
        self._deltas.add(Call(name))
        self._reader.release()
        self._misplaced = []
        self.is_open = True

    def write(self, arguments: str) -> None:
        """Append to the arguments of the open call."""
        self._deltas.append(ARGUMENTS, self._entities.feed(arguments) if self._entities else arguments)

    def add_misplaced(self, text: str) -> None:
        """Add text inside of the open call that belongs neither to the name nor to the arguments."""
        if text.strip():
            self._misplaced.append(text.strip())

    @property
    def misplaced(self) -> str:
        """Misplaced text of the open call."""
        return " ".join(self._misplaced)

    def close(self) -> None:
        """End the open call, then write the misplaced text as a message."""
        if self._entities:
            self._deltas.append(ARGUMENTS, self._entities.flush())
        self._end_item()
        if self._misplaced:
            self._deltas.report(TEXT_IN_CALL)
            self._deltas.append(MESSAGE, " ".join(self._misplaced))
            self._end_item()
            self._misplaced = []
        self.is_open = False
        self.done = self._one_call
        self._has_called = True
        self._reader.mark()

    def commit(self) -> None:
        """Take the separators behind a complete call as read."""
        if self._has_called and not self.is_open:
            self._reader.mark()


class ObjectWriter:
    """Writes the arguments of a call as a JSON object, key by key."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self.is_empty = True
        self._write = write

    def key(self, key: str) -> None:
        """Begin a property."""
        self._write(("{" if self.is_empty else ", ") + json.dumps(key, ensure_ascii=False) + ": ")
        self.is_empty = False

    def end(self) -> None:
        """End the object."""
        self._write("{}" if self.is_empty else "}")


@contextmanager
def ended(reader: Reader, end: Callable[[], None], unfinished: Callable[[], str] | None = None) -> Iterator[None]:
    """Call `end` at the end of the context, or at the end of the text unless the text was cut.

    `unfinished` returns the text that the context has read in vain if the text was cut.
    """
    try:
        yield
    except EndOfText:
        if not reader.cut:
            end()
        elif unfinished is not None:
            reader.unfinished = unfinished()
        raise
    end()


@contextmanager
def written_object(reader: Reader, write: Callable[[str], None]) -> Iterator[ObjectWriter]:
    """Write an object, and end the object with the context, or at the end of the text unless the text was cut."""
    writer = ObjectWriter(write)
    with ended(reader, writer.end):
        yield writer


def pass_scalar(reader: Reader, ends: Markers, write: Callable[[str], None]) -> Steps[None]:
    """Write a value without quotes, up to one of `ends`, which stays unread, or to the end of the text unless the text was cut."""
    try:
        text, stop = yield from reader.read_until(ends)
    except EndOfText:
        if not reader.cut:
            write(reader.unfinished.strip())
            reader.unfinished = ""
        raise
    reader.at -= len(stop)
    write(text)


def json_string_part(text: str) -> str:
    """Return `text` as the inside of a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]
