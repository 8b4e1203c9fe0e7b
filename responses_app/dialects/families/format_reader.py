"""Reading of written turns with the formats of named parsers, declared and derived."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

from responses_app.dialects.families.read_back import compact, read_turn, reads_calls, reads_keys
from responses_app.dialects.families.turn_set import TurnSet, Variants
from responses_app.dialects.families.unread_output import SpecialTokens
from responses_app.dialects.families.written_turns import ANSWER, ONE, WrittenTurn
from responses_app.dialects.formats.base import CallFormat, OutputFormat, ReasoningFormat
from responses_app.dialects.formats.call_text import write_calls
from responses_app.dialects.formats.table import output_format

Reads: TypeAlias = Callable[[WrittenTurn, OutputFormat, Collection[str]], bool]


class FormatReader:
    """Reads the turns of `sources`. `calls` and `reasoning` are formats by names that no declared parser has.

    `turns` is the source that is read; with `every` all forms of a turn have to be read, else one. `fit` returns the variant of a
    format for the tokenizer.
    """

    def __init__(self, sources: Sequence[TurnSet], tokens: SpecialTokens, fit: Callable[[OutputFormat], OutputFormat]) -> None:
        self.turns = sources[0]
        self.every = False
        self.calls: dict[str | None, CallFormat] = {}
        self.reasoning: dict[str | None, ReasoningFormat] = {}
        self._sources = sources
        self._tokens = tokens
        self._fit = fit

    def format(self, reasoning: str | None, tools: str | None) -> OutputFormat:
        """Return the format of two parsers."""
        output = self._fit(
            output_format(None if reasoning in self.reasoning else reasoning, None if tools in self.calls else tools)
        )
        return replace(
            output,
            reasoning=self.reasoning.get(reasoning, output.reasoning),
            calls=self.calls.get(tools, output.calls),
        )

    def reads(self, reads: Reads, turns: Sequence[Variants], reasoning: str | None, tools: str | None) -> bool:
        """Return True if the format of the parsers reads a variant of each turn, or all with `every`."""
        return self.output_reads(reads, turns, self.format(reasoning, tools))

    def output_reads(self, reads: Reads, turns: Sequence[Variants], output: OutputFormat) -> bool:
        """Return True if `output` reads a variant of each turn, or all with `every`."""
        hidden, some = self.hidden(output), all if self.every else any
        return all(some(reads(turn, output, hidden) for turn in variants) for variants in turns if variants)

    def hidden(self, output: OutputFormat) -> frozenset[str]:
        """Return the special tokens in the turns that are no parts of markers."""
        markers = output.markers
        return frozenset(token for token in self._written_tokens if not any(token in marker for marker in markers))

    def reads_all(self, turn: WrittenTurn, output: OutputFormat, hidden: Collection[str]) -> bool:
        """Return True if `output` reads every part of the calls: no text remains, and no token is hidden."""
        if any(token in turn.text and token not in self.turns.plain_text for token in hidden):
            return False
        return reads_calls(turn, output, hidden) and self.leaves_no_text(turn, output, hidden)

    def reads_all_keys(self, turn: WrittenTurn, output: OutputFormat, hidden: Collection[str]) -> bool:
        """Return True if `output` reads the names and the keys, and no text remains."""
        return reads_keys(turn, output, hidden) and self.leaves_no_text(turn, output, hidden)

    def reads_derived(self, reasoning: str | None, tools: str) -> bool:
        """Return True if a derived format of calls reads the turns: the calls, and the keys of those with all types."""
        return self.reads(self.reads_all, self.turns.calls, reasoning, tools) and self.reads(
            self.reads_all_keys, self.turns.rich, reasoning, tools
        )

    def writes(self, tools: str) -> bool:
        """Return True if forced calls have the form of the turns."""
        calls = self.format(None, tools).calls
        name, arguments = ONE
        return calls is None or self.turns.has_call(write_calls(calls.syntax, [{"name": name, "arguments": arguments}]))

    def writes_exactly(self, tools: str) -> bool:
        """Return True if forced calls have the form of the turns, also the white space."""
        calls, (name, arguments) = self.format(None, tools).calls, ONE
        written = write_calls(calls.syntax, [{"name": name, "arguments": arguments}]) if calls else ""
        return any(written in turn.text for variants in self.turns.calls[:1] for turn in variants)

    @cached_property
    def _written_tokens(self) -> frozenset[str]:
        """Special tokens in the turns: a tokenizer may have thousands of others."""
        text = "\n".join(each.text for each in self._sources)
        return frozenset(token for token in self._tokens.special if token in text)

    def leaves_no_text(self, turn: WrittenTurn, output: OutputFormat, hidden: Collection[str]) -> bool:
        """Return True if `output` reads no text but that of the turn."""
        # The tokenizer may not name all tokens around a turn: those stand around a plain text too.
        plain = "".join(read_turn(each, output, hidden).text for each in self.turns.plain[:1])
        before, _, behind = map(compact, plain.partition(ANSWER))
        return compact(read_turn(turn, output, hidden).text).removeprefix(before).removesuffix(behind) == compact(turn.content)
