"""Choice of the output format by reading back what the chat template writes."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.constraints.structural_tag import regex
from responses_app.dialects.families.derived_format import DERIVED, derived_calls, derived_reasoning
from responses_app.dialects.families.detection import Detection, ReadBack, Source
from responses_app.dialects.families.read_back import (
    compact,
    read_turn,
    reads_all_parts,
    reads_calls,
    reads_entities,
    reads_keys,
    reads_reasoning,
)
from responses_app.dialects.families.turn_set import TurnSet, Variants
from responses_app.dialects.families.unread_output import SpecialTokens, keep_unread
from responses_app.dialects.families.written_turns import ANSWER, ONE, TurnWriter, WrittenTurn
from responses_app.dialects.formats.base import CallFormat, OutputFormat, ReasoningFormat
from responses_app.dialects.formats.call_text import write_calls
from responses_app.dialects.formats.table import CALLS, HERMES_PARSERS, REASONING, output_format

logger = logging.getLogger(__name__)

# Characters of a written turn in a warning.
_MAX_SHOWN = 120
# End of a prompt that opens reasoning.
_REASONING_OPENING = re.compile(r"[<\[◁⟪](?!/)[^<>\[\]◁▷⟪⟫]*(?:think|thought|reason)[^<>\[\]◁▷⟪⟫]*[>\]▷⟫]$", re.IGNORECASE)
_TAG = re.compile(r"<\w+>")
# Tags alone, or tags around a word.
_TAGS = re.compile(r"[<\[◁⟪【][^\s]*[>\]▷⟫】]")
# Parsers of the format that is used where no parser is named.
_DEFAULT_REASONING, _DEFAULT_CALLS = "qwen3", "hermes"

_Reads: TypeAlias = Callable[[WrittenTurn, OutputFormat, Collection[str]], bool]


@dataclass(frozen=True, slots=True)
class FormatChoice:
    """Detection with the parsers that were chosen, and the output format of the model."""

    detection: Detection
    output: OutputFormat


def choose_format(
    template: ChatTemplate, detection: Detection, tokens: SpecialTokens, fit: Callable[[OutputFormat], OutputFormat]
) -> FormatChoice:
    """Choose the format that reads what the template writes; `detection` has the first candidate.

    `fit` returns the variant of a format for the tokenizer. Parsers that the operator has named stay. An error of the template
    becomes a warning.
    """
    try:
        return _Chooser(template, detection, tokens, fit).choose()
    except Exception as error:  # The template of a model may fail in any way, and a model must start all the same.
        logger.debug("the chat template cannot be checked", exc_info=True)
        warning = f"The chat template cannot be checked ({error}): calls and reasoning may be shown as text."
        output = fit(output_format(detection.reasoning_parser, detection.tool_parser))
        return FormatChoice(replace(detection, warnings=(*detection.warnings, warning)), keep_unread(output, detection, tokens))


class _Chooser:
    def __init__(
        self, template: ChatTemplate, detection: Detection, tokens: SpecialTokens, fit: Callable[[OutputFormat], OutputFormat]
    ) -> None:
        self._detection = detection
        self._tokens = tokens
        self._fit = fit
        self._writer = TurnWriter(template, sorted(tokens.stops))
        self._turns = TurnSet(self._writer)
        self._derived_calls: CallFormat | None = None
        self._derived_reasoning: ReasoningFormat | None = None

    def choose(self) -> FormatChoice:
        """Return the first pair of parsers that reads the turns, or else the detected pair with warnings."""
        self._writer.check()
        detection = self._detection
        reasoning, tools = detection.reasoning_parser, detection.tool_parser
        calls_read = reasoning_read = ReadBack.NOT_WRITTEN
        if self._is_off("tool_parser", tools):
            calls_read = ReadBack.NOT_CHECKED
        elif self._turns.calls:
            reader, read_back = self._choose_calls(reasoning, tools)
            # Tools that the template does not describe are described in the format that is read.
            if read_back is ReadBack.EQUAL or self._writer.shows_tools():
                tools, calls_read = reader, read_back
        if self._is_off("reasoning_parser", reasoning):
            reasoning_read = ReadBack.NOT_CHECKED
        elif self._turns.reasoning:
            reasoning, reasoning_read = self._choose_reasoning(reasoning, tools)
        elif self._unread_opening(reasoning) and "reasoning_parser" not in detection.named:
            readers = (each for each in self._reasoning_candidates() if not self._unread_opening(each))
            reasoning = next(readers, reasoning)
        chosen = replace(detection, reasoning_parser=reasoning, tool_parser=tools, calls=calls_read, reasoning=reasoning_read)
        output = self._with_entities(self._without_answer_tags(self._format(reasoning, tools)))
        return FormatChoice(self._explained(chosen), self._with_unread_parts(output, chosen))

    def _with_entities(self, output: OutputFormat) -> OutputFormat:
        """Return `output` with entities decoded in arguments if the template writes them."""
        if output.calls and self._turns.escaped and self._output_reads(reads_entities, [self._turns.escaped], output):
            return replace(output, calls=replace(output.calls, has_entities=True))
        return output

    def _without_answer_tags(self, output: OutputFormat) -> OutputFormat:
        """Return `output` without the tags that the template writes around every answer."""
        for turn in self._turns.plain[:1]:
            read_text = read_turn(turn, output, self._hidden(output)).text
            before, behind = (text.strip() for text in read_text.partition(ANSWER)[::2])
            tag = before or turn.opening.rpartition("\n")[2].strip()
            is_pair = _TAG.fullmatch(tag) and behind == f"</{tag[1:]}"
            if is_pair or (_TAGS.fullmatch(before) and (not behind or _TAGS.fullmatch(behind))):
                head = output.answer_head or regex(f"{re.escape(tag)}\n?")
                return replace(output, ignored=tuple(filter(None, (*output.ignored, tag, behind))), answer_head=head)
        return output

    def _with_unread_parts(self, output: OutputFormat, chosen: Detection) -> OutputFormat:
        calls = [turn for variants in self._turns.calls + self._turns.rich for turn in variants]
        reasoning = [turn for variants in self._turns.reasoning for turn in variants]
        return keep_unread(output, chosen, self._tokens, calls, reasoning, self._turns.plain_text)

    @cached_property
    def _written_tokens(self) -> frozenset[str]:
        """Special tokens in the turns: a tokenizer may have thousands of others."""
        text = self._turns.text
        return frozenset(token for token in self._tokens.special if token in text)

    def _choose_calls(self, reasoning: str | None, tools: str | None) -> tuple[str | None, ReadBack]:
        turns, rich = self._turns.calls, self._turns.rich
        is_read = self._reads(reads_calls, turns, reasoning, tools)
        if "tool_parser" in self._detection.named:
            return tools, ReadBack.EQUAL if is_read else ReadBack.DIFFERENT
        if is_read and self._reads(reads_calls, rich, reasoning, tools):
            is_usual = (tools or _DEFAULT_CALLS) in HERMES_PARSERS
            if is_usual and not self._writes(tools) and self._derives_calls(reasoning) and self._writes(DERIVED):
                return DERIVED, ReadBack.EQUAL
            # Without a parser's name Hermes calls are read.
            return tools or _DEFAULT_CALLS, ReadBack.EQUAL
        readers = [each for each in self._call_candidates() if self._reads(self._reads_all, turns, reasoning, each)]
        best = [each for each in readers if self._reads(self._reads_all, rich, reasoning, each)]
        if not best and is_read:
            return tools or _DEFAULT_CALLS, ReadBack.EQUAL
        best = [each for each in best or readers if self._writes(each)] or best or readers
        if not (best and self._writes(best[0])) and self._derives_calls(reasoning) and (not best or self._writes(DERIVED)):
            return DERIVED, ReadBack.EQUAL
        return (*best, tools)[0], ReadBack.EQUAL if readers else ReadBack.DIFFERENT

    def _choose_reasoning(self, reasoning: str | None, tools: str | None) -> tuple[str | None, ReadBack]:
        is_read = self._reads(reads_reasoning, self._turns.reasoning, reasoning, tools)
        if "reasoning_parser" in self._detection.named:
            return reasoning, ReadBack.EQUAL if is_read else ReadBack.DIFFERENT
        if is_read:
            return reasoning or _DEFAULT_REASONING, ReadBack.EQUAL
        for each in self._reasoning_candidates():
            if self._reads(reads_reasoning, self._turns.reasoning, each, tools):
                return each, ReadBack.EQUAL
        for derived in derived_reasoning(self._turns.reasoning[0], self._turns.plain_text, self._writer.prompt):
            self._derived_reasoning = derived
            output = self._without_answer_tags(self._format(DERIVED, tools))
            if self._output_reads(reads_all_parts, [*self._turns.reasoning, self._turns.plain], output):
                return DERIVED, ReadBack.EQUAL
        return reasoning, ReadBack.DIFFERENT

    def _writes(self, tools: str | None) -> bool:
        """Return True if forced calls have the form that the template writes, up to white space."""
        calls = self._format(None, tools or _DEFAULT_CALLS).calls
        name, arguments = ONE
        written = compact(write_calls(calls.syntax, [{"name": name, "arguments": arguments}])) if calls else ""
        return any(written in compact(turn.text) for turn in self._turns.calls[0])

    def _derives_calls(self, reasoning: str | None) -> bool:
        """Derive the format of the calls from the turns. Return True if it reads the turns."""
        one, two = self._turns.calls[:2]
        for derived in derived_calls(one, two, self._turns.rich[0], self._turns.plain_text):
            self._derived_calls = derived
            with suppress(ValueError):  # a marker begins another
                if self._reads(self._reads_all, self._turns.calls, reasoning, DERIVED) and self._reads(
                    self._reads_all_keys, self._turns.rich, reasoning, DERIVED
                ):
                    return True
        return False

    def _reads_all(self, turn: WrittenTurn, output: OutputFormat, hidden: Collection[str]) -> bool:
        """Return True if `output` reads every part of the calls: no text remains, and no token is hidden."""
        if any(token in turn.text and token not in self._turns.plain_text for token in hidden):
            return False
        return reads_calls(turn, output, hidden) and self._leaves_no_text(turn, output, hidden)

    def _reads_all_keys(self, turn: WrittenTurn, output: OutputFormat, hidden: Collection[str]) -> bool:
        return reads_keys(turn, output, hidden) and self._leaves_no_text(turn, output, hidden)

    def _leaves_no_text(self, turn: WrittenTurn, output: OutputFormat, hidden: Collection[str]) -> bool:
        # The tokenizer may not name all tokens around a turn: those stand around a plain text too.
        plain = "".join(read_turn(each, output, hidden).text for each in self._turns.plain[:1])
        before, _, behind = map(compact, plain.partition(ANSWER))
        return compact(read_turn(turn, output, hidden).text).removeprefix(before).removesuffix(behind) == compact(turn.content)

    def _unread_opening(self, reasoning: str | None) -> str:
        """Return the marker with which a prompt opens the reasoning, empty if the format `reasoning` has the marker."""
        prompt = self._writer.prompt.rstrip()
        begins = REASONING[reasoning].begins if reasoning in REASONING else ()
        opening = _REASONING_OPENING.search(prompt)
        return opening[0] if opening and not prompt.endswith(begins) else ""

    def _is_off(self, key: str, parser: str | None) -> bool:
        """Return True if the operator has switched a parser off."""
        return parser is None and key in self._detection.named

    def _call_candidates(self) -> list[str]:
        """Return the declared formats of calls, those of other families that fit first."""
        likely = [tools for _, _, tools in self._detection.alternatives]
        text = "".join(turn.text for variants in self._turns.calls for turn in variants)
        shown = [name for name, calls in CALLS.items() if any(mark in text for mark in (*calls.begins, *calls.leads))]
        return list(dict.fromkeys(name for name in (*likely, _DEFAULT_CALLS, *shown) if name in shown))

    def _reasoning_candidates(self) -> list[str]:
        likely = [reasoning for _, reasoning, _ in self._detection.alternatives]
        return list(dict.fromkeys(name for name in (*likely, _DEFAULT_REASONING, *REASONING) if name in REASONING))

    def _reads(self, reads: _Reads, turns: Sequence[Variants], reasoning: str | None, tools: str | None) -> bool:
        """Return True if the format of the parsers reads a variant of each turn."""
        return self._output_reads(reads, turns, self._format(reasoning, tools))

    def _output_reads(self, reads: _Reads, turns: Sequence[Variants], output: OutputFormat) -> bool:
        hidden = self._hidden(output)
        return all(any(reads(turn, output, hidden) for turn in variants) for variants in turns if variants)

    def _hidden(self, output: OutputFormat) -> frozenset[str]:
        """Return the special tokens in the turns that are no parts of markers."""
        markers = output.markers
        return frozenset(token for token in self._written_tokens if not any(token in marker for marker in markers))

    def _format(self, reasoning: str | None, tools: str | None) -> OutputFormat:
        declared = [None if name == DERIVED else name for name in (reasoning, tools)]
        output = self._fit(output_format(*declared))
        if reasoning == DERIVED:
            output = replace(output, reasoning=self._derived_reasoning)
        return replace(output, calls=self._derived_calls) if tools == DERIVED else output

    def _explained(self, chosen: Detection) -> Detection:
        """Return the detection with its source and its warnings."""
        before, warnings = self._detection, list(chosen.warnings)
        if ReadBack.EQUAL is chosen.calls:
            # What is not known of the family does not matter: its calls are read.
            warnings = [] if chosen.is_unknown else warnings
        pair = (chosen.reasoning_parser, chosen.tool_parser)
        if pair != (before.reasoning_parser, before.tool_parser):
            names = [name for name, *parsers in before.alternatives if tuple(parsers) == pair]
            chosen = replace(chosen, family=names[0] if names else chosen.family, chosen_by=str(Source.READ_BACK), remark="")
        return replace(chosen, warnings=(*warnings, *self._warnings(chosen)))

    def _warnings(self, chosen: Detection) -> Iterator[str]:
        if chosen.calls is ReadBack.DIFFERENT:
            yield (
                f"The chat template writes calls in a form that {_reader('tool parser', chosen.tool_parser)}: "
                "calls of this model will be shown as text. "
                f"The template writes {_shown(self._unread(self._turns.calls, chosen, reads_calls))}"
            )
        elif chosen.tool_parser is None and not chosen.is_unknown and self._writer.shows_tools() and not chosen.named:
            yield (
                "The chat template describes tools and writes no calls: JSON in <tool_call> is read as a call, any other form of calls "
                "will be shown as text. Name the form with tool_parser."
            )
        if chosen.reasoning is ReadBack.NOT_WRITTEN and (opening := self._unread_opening(chosen.reasoning_parser)):
            yield (
                f"The prompt opens reasoning with {opening}, which {_reader('reasoning parser', chosen.reasoning_parser)}: "
                "reasoning of this model will be shown as text."
            )
        if chosen.reasoning is ReadBack.DIFFERENT:
            yield (
                f"The chat template writes reasoning in a form that {_reader('reasoning parser', chosen.reasoning_parser)}: "
                "reasoning of this model will be shown as text, or text as reasoning. "
                f"The template writes {_shown(self._unread(self._turns.reasoning, chosen, reads_reasoning))}"
            )

        yield from self._turns.stop_warnings()

    def _unread(self, turns: Sequence[Variants], chosen: Detection, reads: _Reads) -> str:
        """Return the first turn that is not read."""
        pair = (chosen.reasoning_parser, chosen.tool_parser)
        return next(variants[0].text for variants in turns if variants and not self._reads(reads, [variants], *pair))


def _reader(kind: str, parser: str | None) -> str:
    return f"the {kind} {parser} does not read" if parser else f"no known {kind} reads"


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return f"{line[:_MAX_SHOWN]}…" if len(line) > _MAX_SHOWN else line
