"""Choice of the output format by reading back what the chat template writes."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.constraints.structural_tag import regex
from responses_app.dialects.families.derived.formats import DERIVED, derived_calls, derived_reasoning
from responses_app.dialects.families.derived.openings import with_opening
from responses_app.dialects.families.derived.response_template import ResponseWriter, response_writer
from responses_app.dialects.families.detection import Detection, ReadBack, Source
from responses_app.dialects.families.format_reader import FormatReader
from responses_app.dialects.families.format_warnings import (
    CALL_PART,
    REASONING_PART,
    FormatWarnings,
    OutputPart,
    hidden_calls_warning,
    unknown_reader,
    unwritten_calls_warnings,
)
from responses_app.dialects.families.parser_names import RESPONSE_TEMPLATE
from responses_app.dialects.families.read_back import read_turn, reads_all_parts, reads_calls, reads_entities, reads_reasoning
from responses_app.dialects.families.turn_set import TurnSet
from responses_app.dialects.families.unread_output import SpecialTokens, keep_unread
from responses_app.dialects.families.written_turns import ANSWER, TurnWriter
from responses_app.dialects.formats.base import OutputFormat
from responses_app.dialects.formats.table import CALLS, HERMES_PARSERS, REASONING, output_format, same_but_space
from responses_app.dialects.formats.variants import fit_to_calls

logger = logging.getLogger(__name__)

_TAG = re.compile(r"<\w+>")
# Tags alone, or tags around a word.
_TAGS = re.compile(r"[<\[◁⟪【][^\s]*[>\]▷⟫】]")
# Parsers of the format that is used where no parser is named.
_DEFAULT_REASONING, _DEFAULT_CALLS = "qwen3", "hermes"


@dataclass(frozen=True, slots=True)
class FormatChoice:
    """Detection with the parsers that were chosen, and the output format of the model."""

    detection: Detection
    output: OutputFormat


def choose_format(
    template: ChatTemplate,
    detection: Detection,
    tokens: SpecialTokens,
    fit: Callable[[OutputFormat], OutputFormat],
    response_template: object = None,
) -> FormatChoice:
    """Choose the format that reads what the template writes; `detection` has the first candidate.

    `fit` returns the variant of a format for the tokenizer. `response_template` is that of the checkpoint: it decides where no
    format reads what the chat template writes. Parsers that the operator has named stay. An error of a template becomes a warning.
    Raises ValueError if the operator has named a response template that the checkpoint lacks.
    """
    writer, warnings = response_writer(response_template, sorted(tokens.stops))
    for key in sorted(detection.by_template - (writer.parts if writer else frozenset())):
        raise ValueError(
            f"{key}=hf stands for the response_template in tokenizer_config.json, and that of this model "
            f"{'has no such field' if writer else 'is missing'}: leave {key} out, or name another form. {' '.join(warnings)}".rstrip()
        )
    try:
        choice = _Chooser(template, detection, tokens, fit, writer).choose()
    except Exception as error:  # The template of a model may fail in any way, and a model must start all the same.
        logger.debug("the chat template cannot be checked", exc_info=True)
        warnings = [f"The chat template cannot be checked ({error}): calls and reasoning may be shown as text.", *warnings]
        detection = detection.without_template()
        output = fit(output_format(detection.reasoning_parser, detection.tool_parser))
        choice = FormatChoice(detection, keep_unread(output, detection, tokens))
    chosen = choice.detection
    return replace(choice, detection=replace(chosen, warnings=(*chosen.warnings, *warnings)))


class _Chooser:
    def __init__(
        self,
        template: ChatTemplate,
        detection: Detection,
        tokens: SpecialTokens,
        fit: Callable[[OutputFormat], OutputFormat],
        response: ResponseWriter | None,
    ) -> None:
        self._by_response = detection.by_template
        self._detection = detection.without_template()
        self._tokens = tokens
        self._writer = TurnWriter(template, sorted(tokens.stops))
        self._turns = TurnSet(self._writer)
        self._response_writer = response
        self._response = TurnSet(response) if response else None
        self._reader = FormatReader([self._turns, *filter(None, [self._response])], tokens, fit)
        # Turns that have decided about a parser.
        self._decided: dict[str, TurnSet] = {}
        self._unread = FormatWarnings(self._reader, self._turns, self._response, self._decided)

    def choose(self) -> FormatChoice:
        """Return the first pair of parsers that reads the turns, or else the detected pair with warnings."""
        self._writer.check()
        detection = self._detection
        reasoning, tools = detection.reasoning_parser, detection.tool_parser
        reader, calls_read = self._choose_part(CALL_PART, reasoning, tools)
        # Tools that the template does not describe are described in the format that is read.
        if calls_read is not ReadBack.DIFFERENT or self._writer.shows_tools():
            tools = reader
        else:
            calls_read = ReadBack.NOT_WRITTEN
        if calls_read is ReadBack.NOT_WRITTEN and self._writer.hidden_calls:
            calls_read = ReadBack.DIFFERENT
        reasoning, reasoning_read = self._choose_part(REASONING_PART, reasoning, tools)
        if (
            reasoning_read is ReadBack.NOT_WRITTEN
            and self._unread_opening(reasoning)
            and "reasoning_parser" not in detection.named
        ):
            readers = (each for each in self._reasoning_candidates() if not self._unread_opening(each))
            reasoning = next(readers, reasoning)
        chosen = replace(detection, reasoning_parser=reasoning, tool_parser=tools, calls=calls_read, reasoning=reasoning_read)
        output = fit_to_calls(self._reader.format(reasoning, tools), self._turns.call_texts)
        for turns in (self._turns, *self._decided.values()):
            output = self._without_answer_tags(output, turns)
        output = with_opening(output, self._writer.prompt, self._turns, self._reader)
        if self._response_writer and self._response in self._decided.values():
            output = self._response_writer.without_headers(output)
        return FormatChoice(self._explained(chosen), self._with_unread_parts(self._with_entities(output), chosen))

    def _choose_part(self, part: OutputPart, reasoning: str | None, tools: str | None) -> tuple[str | None, ReadBack]:
        """Choose the parser of a part by the first source whose form is read: the chat template, then the response template."""
        detected = tools if part is CALL_PART else reasoning
        if detected is None and part.key in self._detection.named:
            return None, ReadBack.NOT_CHECKED
        choice: tuple[str | None, ReadBack] = (detected, ReadBack.NOT_WRITTEN)
        for turns, every in self._sources(part):
            self._reader.turns, self._reader.every = turns, every
            candidate = self._choose_calls(reasoning, tools) if part is CALL_PART else self._choose_reasoning(reasoning, tools)
            if candidate[1] is ReadBack.EQUAL or choice[1] is ReadBack.NOT_WRITTEN:
                self._decided[part.key] = turns
                choice = candidate
            if candidate[1] is ReadBack.EQUAL:
                break
        self._reader.every = False
        return choice

    def _sources(self, part: OutputPart) -> Iterator[tuple[TurnSet, bool]]:
        """Yield the turns with a part, and whether every form is to be read.

        The chat template has a turn in forms of which it takes some. The response template allows all of its forms; a format that
        reads the first alone is the last choice. If the operator has named the response template, it alone decides.
        """
        if part.key not in self._by_response and part.turns(self._turns):
            yield self._turns, False
        if self._response and part.key not in self._detection.named and part.turns(self._response):
            yield from ((self._response, True), (self._response, False))

    def _with_entities(self, output: OutputFormat) -> OutputFormat:
        """Return `output` with entities decoded in arguments if the template writes them."""
        if output.calls and self._turns.escaped and self._reader.output_reads(reads_entities, [self._turns.escaped], output):
            return replace(output, calls=replace(output.calls, has_entities=True))
        return output

    def _without_answer_tags(self, output: OutputFormat, turns: TurnSet) -> OutputFormat:
        """Return `output` without the tags that stand around every answer of the turns."""
        for turn in turns.plain[:1]:
            read_text = read_turn(turn, output, self._reader.hidden(output)).text
            before, behind = (text.strip() for text in read_text.partition(ANSWER)[::2])
            with_tokens = turn.text.partition(ANSWER)[0].strip()
            if before and not _TAGS.fullmatch(before) and _TAGS.fullmatch(with_tokens):
                # A word between special tokens, which do not come out of the tokenizer without a marker.
                before = with_tokens
            tag = before or turn.opening.rpartition("\n")[2].strip()
            is_pair = _TAG.fullmatch(tag) and behind == f"</{tag[1:]}"
            if is_pair or (_TAGS.fullmatch(before) and (not behind or _TAGS.fullmatch(behind))):
                head = output.answer_head or regex(f"{re.escape(tag)}\n?")
                return replace(output, ignored=tuple(filter(None, (*output.ignored, tag, behind))), answer_head=head)
        return output

    def _with_unread_parts(self, output: OutputFormat, chosen: Detection) -> OutputFormat:
        sources = [self._turns, *([self._response] if self._response else [])]
        calls = [
            turn for source in sources for variants in source.calls + source.rich for turn in variants
        ] + self._writer.hidden_calls
        reasoning = [turn for source in sources for variants in source.reasoning for turn in variants]
        if self._unread.differs(CALL_PART, chosen):
            # The model may write calls in the other form.
            chosen = replace(chosen, calls=ReadBack.DIFFERENT)
        return keep_unread(output, chosen, self._tokens, calls, reasoning, self._turns.plain_text)

    def _choose_calls(self, reasoning: str | None, tools: str | None) -> tuple[str | None, ReadBack]:
        reader, derived = self._reader, self._derived_name
        turns, rich = reader.turns.calls, reader.turns.rich
        is_read = reader.reads(reads_calls, turns, reasoning, tools)
        if "tool_parser" in self._detection.named:
            return tools, ReadBack.EQUAL if is_read else ReadBack.DIFFERENT
        if is_read and reader.reads(reads_calls, rich, reasoning, tools):
            # Without a parser's name Hermes calls are read.
            usual = tools or _DEFAULT_CALLS
            if (
                usual in HERMES_PARSERS
                and not reader.writes(usual)
                and self._derives_calls(reasoning)
                and reader.writes(derived)
            ):
                return derived, ReadBack.EQUAL
            return next(filter(reader.writes_exactly, same_but_space(usual)), usual), ReadBack.EQUAL
        readers = [each for each in self._call_candidates() if reader.reads(reader.reads_all, turns, reasoning, each)]
        best = [each for each in readers if reader.reads(reader.reads_all, rich, reasoning, each)]
        if not best and is_read:
            return tools or _DEFAULT_CALLS, ReadBack.EQUAL
        best = [each for each in best or readers if reader.writes(each)] or best or readers
        if not (best and reader.writes(best[0])) and self._derives_calls(reasoning) and (not best or reader.writes(derived)):
            return derived, ReadBack.EQUAL
        return (*best, tools)[0], ReadBack.EQUAL if readers else ReadBack.DIFFERENT

    def _choose_reasoning(self, reasoning: str | None, tools: str | None) -> tuple[str | None, ReadBack]:
        reader, turns = self._reader, self._reader.turns
        is_read = reader.reads(reads_reasoning, turns.reasoning, reasoning, tools)
        if "reasoning_parser" in self._detection.named:
            return reasoning, ReadBack.EQUAL if is_read else ReadBack.DIFFERENT
        if is_read:
            return reasoning or _DEFAULT_REASONING, ReadBack.EQUAL
        for each in self._reasoning_candidates():
            if reader.reads(reads_reasoning, turns.reasoning, each, tools):
                return each, ReadBack.EQUAL
        merges = turns is self._response
        for derived in derived_reasoning(turns.reasoning[0], turns.plain_text, self._writer.prompt, merges=merges):
            reader.reasoning[self._derived_name] = derived
            output = self._without_answer_tags(reader.format(self._derived_name, tools), turns)
            if reader.output_reads(reads_all_parts, [*turns.reasoning, turns.plain], output):
                return self._derived_name, ReadBack.EQUAL
        return reasoning, ReadBack.DIFFERENT

    @property
    def _derived_name(self) -> str:
        """Name of the formats that are derived from the turns that are read."""
        return RESPONSE_TEMPLATE if self._reader.turns is self._response else DERIVED

    def _derives_calls(self, reasoning: str | None) -> bool:
        """Derive the format of the calls from the turns. Return True if it reads the turns."""
        reader, turns = self._reader, self._reader.turns
        one, two = turns.calls[:2]
        # A response template may have several delimiters, and texts outside of its fields are no part of a call.
        merges, plain = (True, "") if turns is self._response else (False, turns.plain_text)
        for derived in derived_calls(one, two, turns.rich[0], plain, merges=merges):
            reader.calls[self._derived_name] = derived
            with suppress(ValueError):  # a marker begins another
                if reader.reads_derived(reasoning, self._derived_name):
                    return True
        return False

    def _unread_opening(self, reasoning: str | None) -> str:
        """Return the marker with which a prompt opens the reasoning, empty if the format `reasoning` has the marker."""
        begins = REASONING[reasoning].begins if reasoning in REASONING else ()
        return "" if self._writer.prompt.rstrip().endswith(begins) else self._writer.reasoning_opening

    def _call_candidates(self) -> list[str]:
        """Return the declared formats of calls, those of other families that fit first."""
        likely = [tools for _, _, tools in self._detection.alternatives]
        text = "".join(turn.text for variants in self._reader.turns.calls for turn in variants)
        shown = [name for name, calls in CALLS.items() if any(mark in text for mark in (*calls.begins, *calls.leads))]
        return list(dict.fromkeys(name for name in (*likely, _DEFAULT_CALLS, *shown) if name in shown))

    def _reasoning_candidates(self) -> list[str]:
        likely = [reasoning for _, reasoning, _ in self._detection.alternatives]
        return list(dict.fromkeys(name for name in (*likely, _DEFAULT_REASONING, *REASONING) if name in REASONING))

    def _explained(self, chosen: Detection) -> Detection:
        """Return the detection with the source and the warnings."""
        before, warnings = self._detection, list(chosen.warnings)
        if ReadBack.EQUAL is chosen.calls:
            # What is not known of the family does not matter: its calls are read.
            warnings = [] if chosen.is_unknown else warnings
        pair = (chosen.reasoning_parser, chosen.tool_parser)
        source = Source.RESPONSE_TEMPLATE if self._response in self._decided.values() else Source.READ_BACK
        if pair != (before.reasoning_parser, before.tool_parser):
            names = [name for name, *parsers in before.alternatives if tuple(parsers) == pair]
            chosen = replace(chosen, family=names[0] if names else chosen.family, chosen_by=str(source), remark="")
        evidence = (*chosen.evidence, *([RESPONSE_TEMPLATE] if source is Source.RESPONSE_TEMPLATE else []))
        return replace(chosen, evidence=evidence, warnings=(*warnings, *self._warnings(chosen)))

    def _warnings(self, chosen: Detection) -> Iterator[str]:
        yield from self._unread.unread(CALL_PART, chosen)
        if chosen.calls is ReadBack.DIFFERENT and CALL_PART.key not in self._decided:
            yield hidden_calls_warning(self._writer.hidden_calls[0], chosen.tool_parser)
        if self._writer.shows_tools():
            yield from unwritten_calls_warnings(chosen)
        if chosen.reasoning is ReadBack.NOT_WRITTEN and (opening := self._unread_opening(chosen.reasoning_parser)):
            yield (
                f"The prompt opens reasoning with {opening}, which {unknown_reader(REASONING_PART, chosen.reasoning_parser)}: "
                "reasoning of this model will be shown as text."
            )
        yield from self._unread.unread(REASONING_PART, chosen)
        yield from self._turns.stop_warnings()
