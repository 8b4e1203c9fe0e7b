"""Warnings for the operator about output that is not read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from responses_app.dialects.families.detection import Detection, ReadBack
from responses_app.dialects.families.format_reader import FormatReader, Reads
from responses_app.dialects.families.read_back import reads_calls, reads_reasoning
from responses_app.dialects.families.turn_set import TurnSet, Variants
from responses_app.dialects.families.written_turns import WrittenTurn

# Characters of a written turn in a warning.
_MAX_SHOWN = 120


@dataclass(frozen=True, slots=True)
class OutputPart:
    """Part of an output that has a parser of its own. `key` is the setting of the parser."""

    key: str
    title: str
    lost: str
    reads: Reads
    turns: Callable[[TurnSet], list[Variants]]


CALL_PART = OutputPart(
    "tool_parser", "calls", "calls of this model will be shown as text", reads_calls, lambda turns: turns.calls
)
REASONING_PART = OutputPart(
    "reasoning_parser",
    "reasoning",
    "reasoning of this model will be shown as text, or text as reasoning",
    reads_reasoning,
    lambda turns: turns.reasoning,
)


@dataclass(frozen=True, slots=True)
class FormatWarnings:
    """Warnings about the parsers that were chosen. `decided` has the turns that have decided about each parser."""

    reader: FormatReader
    chat: TurnSet
    response: TurnSet | None
    decided: Mapping[str, TurnSet]

    def unread(self, part: OutputPart, chosen: Detection) -> Iterator[str]:
        """Yield a warning if a part is not read, or if the two templates of the checkpoint have different forms of it."""
        turns, parser = self.decided.get(part.key), getattr(chosen, part.key)
        if turns is None:
            return
        if getattr(chosen, part.title) is ReadBack.DIFFERENT:
            written, template = ("names", "response_template") if turns is self.response else ("writes", "chat template")
            yield (
                f"The {template} {written} {part.title} in a form that {unknown_reader(part, parser)}: {part.lost}. "
                f"The template {written} {_shown(next(self._unread(part, turns, chosen), ''))}"
            )
        elif turns is self.response and (forms := list(self._unread_forms(part, turns, chosen))):
            yield f"The response_template allows forms of {part.title} that are not read: {_shown(forms[0])}"
        if self.differs(part, chosen):
            taken, other = ("response_template", "chat template")[:: 1 if turns is self.response else -1]
            yield (
                f"The chat template and the response_template of the checkpoint have different forms of {part.title}: "
                f"that of the {taken} is read, {part.title} in the form of the {other} will not be recognised."
            )

    def differs(self, part: OutputPart, chosen: Detection) -> bool:
        """Return True if the form of a part is read that one template has, and not the form of the other."""
        turns = self.decided.get(part.key)
        other = self.chat if turns is self.response else self.response
        is_read = getattr(chosen, part.title) is ReadBack.EQUAL
        return is_read and turns is not None and other is not None and any(self._unread(part, other, chosen))

    def _unread_forms(self, part: OutputPart, turns: TurnSet, chosen: Detection) -> Iterator[str]:
        """Yield the forms of turns that are not read."""
        self.reader.turns = turns
        output = self.reader.format(chosen.reasoning_parser, chosen.tool_parser)
        hidden = self.reader.hidden(output)
        for each in (turn for variants in part.turns(turns) for turn in variants):
            is_alone = part is REASONING_PART or self.reader.leaves_no_text(each, output, hidden)
            if not (is_alone and part.reads(each, output, hidden)):
                yield each.text

    def _unread(self, part: OutputPart, turns: TurnSet, chosen: Detection) -> Iterator[str]:
        """Yield the turns that are not read."""
        pair = (chosen.reasoning_parser, chosen.tool_parser)
        for variants in part.turns(turns):
            if variants and not self.reader.reads(part.reads, [variants], *pair):
                yield variants[0].text


def hidden_calls_warning(turn: WrittenTurn, parser: str | None) -> str:
    """Return the warning about calls whose names alone are written in clear."""
    return (
        "The chat template writes the arguments of calls in an encoding, as base64 or in percent signs, or not at all, which "
        f"{unknown_reader(CALL_PART, parser)}: {CALL_PART.lost}. The template writes {_shown(turn.text)}"
    )


def unwritten_calls_warnings(chosen: Detection) -> Iterator[str]:
    """Yield a warning about the calls of a template that describes tools and writes no calls, unless their form is known."""
    begin = "The chat template describes tools and writes no calls: "
    end = "any other form of calls will be shown as text. Name the form with tool_parser."
    if chosen.calls is ReadBack.DIFFERENT or chosen.is_unknown or chosen.named:
        return
    if chosen.tool_parser is None:
        yield f"{begin}JSON in <tool_call> is read as a call, {end}"
    elif chosen.calls is ReadBack.NOT_WRITTEN and not chosen.is_confirmed:
        yield f"{begin}they are read in the form {chosen.tool_parser} because of {' '.join(chosen.evidence)}, {end}"


def unknown_reader(part: OutputPart, parser: str | None) -> str:
    """Return words for a parser that does not read a form."""
    kind = part.key.replace("_", " ")
    return f"the {kind} {parser} does not read" if parser else f"no known {kind} reads"


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return f"{line[:_MAX_SHOWN]}…" if len(line) > _MAX_SHOWN else line
