"""Declaration of an output format: reasoning markers and the written form of calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from responses_app.dialects.constraints.structural_tag import Format
from responses_app.dialects.formats.calls import CallWriter
from responses_app.dialects.formats.reader import Reader, Steps

Schemas = Mapping[str, Mapping[str, Any]]
"""Parameter schemas of the declared tools by name."""
Tool = Mapping[str, Any]
# Place of the name of a call in its end, and of a key in the end of its value.
NAME = "\0"


class Syntax(Protocol):
    """Written form of calls: reads the calls of a section, and builds the grammar of calls.

    Every tag of the grammar begins with `trigger`. `separator` stands between two tags.
    """

    @property
    def markers(self) -> tuple[str, ...]:
        """Markers inside of calls, which the tokenizer must not hide."""
        ...

    @property
    def trigger(self) -> str:
        """Text with which calls begin in the grammar."""
        ...

    @property
    def separator(self) -> str:
        """Text between two tags in the grammar."""
        ...

    def read(self, reader: Reader, calls: CallWriter, begin: str, /) -> Steps[None]:
        """Read the calls of a section behind the marker `begin`, up to the end of the section. Raises NotACall, EndOfText."""
        ...

    def tags(self, tools: Sequence[Tool], *, only_one: bool) -> list[Format]:
        """Return the tags of the calls of `tools`, or a single tag of a section with at least one call."""
        ...


class SectionSyntax:
    """Part of a `Syntax` that most syntaxes share: calls begin with the text `begin`, and nothing stands between two tags."""

    __slots__ = ()

    if TYPE_CHECKING:
        # A field of some syntaxes, and a property of others.
        @property
        def begin(self) -> str:
            """Text with which a section begins."""
            ...

    @property
    def trigger(self) -> str:
        """Text with which calls begin in the grammar."""
        return self.begin

    @property
    def separator(self) -> str:
        """Text between two tags in the grammar."""
        return ""


@dataclass(frozen=True, slots=True)
class ReasoningFormat:
    """Markers of reasoning, the usual ones first. `title` is a word behind the opening marker that is no reasoning."""

    begins: tuple[str, ...]
    ends: tuple[str, ...]
    title: str = ""
    # False if a call inside of reasoning is reasoning.
    has_calls: bool = True
    # True if closing markers may be text: outside of reasoning they stay, words unless they begin an answer.
    keeps_ends: bool = False


@dataclass(frozen=True, slots=True)
class CallFormat:
    """Markers and syntax of calls.

    `begins` open a section. `leads` are beginnings without a marker: characters such as `{` that may also be text, so that only
    calls of declared tools count. `ends` are closing markers, dropped from text.
    """

    syntax: Syntax
    begins: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    leads: tuple[str, ...] = ()
    # True if calls are constrained also without `strict`.
    always_constrained: bool = False
    # True if the characters of XML in values are written as entities.
    has_entities: bool = False


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """Format of a model's output. `ignored` are markers around the answer, dropped from text.

    `answer_head` and `call_head` may stand before a constrained answer, and before required calls. `opening` is the end of a
    prompt that belongs to the output: the beginning of the first message.

    `keeps_markers` is for models whose calls may have another form: markers of calls that are none stay in the text, and so do
    the special tokens `kept`. Texts of `unknown_calls` begin calls of the other form, or stand around the name of a tool (`NAME`).
    """

    reasoning: ReasoningFormat | None = None
    calls: CallFormat | None = None
    ignored: tuple[str, ...] = ()
    answer_head: Format | None = None
    call_head: Format | None = None
    opening: str = ""
    keeps_markers: bool = False
    kept: tuple[str, ...] = ()
    unknown_calls: tuple[str, ...] = ()

    @property
    def markers(self) -> tuple[str, ...]:
        """All markers, which the tokenizer must not hide."""
        reasoning = (*self.reasoning.begins, *self.reasoning.ends) if self.reasoning else ()
        calls = (*self.calls.begins, *self.calls.ends, *self.calls.syntax.markers) if self.calls else ()
        return tuple(sorted({*reasoning, *calls, *self.ignored, *self.kept} - {""}))
