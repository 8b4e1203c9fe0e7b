"""Output of a model that no format reads: special tokens that stay in the text, and beginnings of calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from responses_app.dialects.families.detection import Detection, ReadBack
from responses_app.dialects.families.written_turns import CALL_ID, WrittenTurn
from responses_app.dialects.formats.base import NAME, OutputFormat

# Special tokens that mark calls, judged by their texts.
_CALL_TOKEN = re.compile(r"tool|func|call|invoke|action|arg|param", re.IGNORECASE)
# Characters of the beginning of a call, and the fewest by which it is recognised.
_MAX_HEAD, _MIN_HEAD = 40, 3
# Characters around a name, other than those of words, and those of prose.
_AROUND = r"[^\w\s]{0,3}[ \n]?[^\w\s]{0,3}"
_PROSE = frozenset(" \n.,:;'\"()")


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """Special tokens of a tokenizer, and the tokens that end a turn."""

    special: frozenset[str]
    stops: frozenset[str]

    def inside(self, plain_text: str) -> frozenset[str]:
        """Return the special tokens that neither end a turn nor stand in `plain_text`, a turn without calls and reasoning."""
        return frozenset(token for token in self.special - self.stops if token not in plain_text)


def keep_unread(
    output: OutputFormat,
    detection: Detection,
    tokens: SpecialTokens,
    call_turns: Sequence[WrittenTurn] = (),
    reasoning_turns: Sequence[WrittenTurn] = (),
    plain_text: str = "",
) -> OutputFormat:
    """Return `output` with the special tokens of calls and reasoning that are not read.

    The turns are those that the template writes. Without a known form of calls, tokens that seem to mark calls stay as well.
    """
    inside, kept_tokens = tokens.inside(plain_text), set[str]()
    if detection.reasoning is ReadBack.DIFFERENT:
        kept_tokens |= _written(inside, reasoning_turns)
    if not _may_be_unknown(detection):
        return replace(output, kept=tuple(sorted(kept_tokens)))
    heads: tuple[str, ...] = ()
    if detection.calls is ReadBack.DIFFERENT:
        kept_tokens |= _written(inside, call_turns)
        heads = tuple(
            dict.fromkeys((*_heads(call_turns, tokens.special - inside), *_frames(call_turns, tokens.special - inside)))
        )
    kept_tokens |= {token for token in inside if _CALL_TOKEN.search(token)}
    return replace(output, kept=tuple(sorted(kept_tokens)), keeps_markers=True, unknown_calls=heads)


def _may_be_unknown(detection: Detection) -> bool:
    """Return True if the model may write calls in another form than the format reads."""
    has_no_form = detection.tool_parser is None and "tool_parser" not in detection.named
    return detection.calls is ReadBack.DIFFERENT or (has_no_form and detection.calls is not ReadBack.EQUAL)


def _written(tokens: frozenset[str], turns: Sequence[WrittenTurn]) -> set[str]:
    return {token for token in tokens if any(token in turn.text for turn in turns)}


def _heads(turns: Sequence[WrittenTurn], hidden: frozenset[str]) -> Iterator[str]:
    """Yield the texts before the names, ids and arguments of the first calls, behind tokens that are not shown."""
    for turn in turns:
        if turn.content or turn.reasoning:
            continue
        name, arguments = turn.calls[0]
        head = re.split("|".join(map(re.escape, (name, CALL_ID, *arguments))), turn.text, maxsplit=1)[0]
        for token in hidden:
            head = head.rpartition(token)[2]
        head = head.strip()[-_MAX_HEAD:]
        if len(head) >= _MIN_HEAD:
            yield head


def _frames(turns: Sequence[WrittenTurn], hidden: frozenset[str]) -> Iterator[str]:
    """Yield the names of calls, as `NAME`, with the characters around these, if no name in prose has such characters around."""
    for turn in turns:
        text = turn.text
        for token in hidden:
            text = text.replace(token, "")
        for name, _ in turn.calls:
            if match := re.search(rf"({_AROUND}){re.escape(name)}({_AROUND})", text):
                before, behind = match[1].lstrip(), match[2].rstrip()
                if not _PROSE.issuperset(before + behind):
                    yield f"{before}{NAME}{behind}"
