"""Assistant turns in the form of a chat template: text that an output format has to read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import product
from typing import Any, TypeAlias

from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.chat.template_fit import THINKING_PART

Call: TypeAlias = tuple[str, Mapping[str, Any]]
"""Name and arguments of a call."""

_ANY_DAY = date(2000, 1, 1)
# Marks are words, so that no template changes them.
_QUESTION, _RESULT = "markquestion", "markresult"
THOUGHT, ANSWER = "markthought is an idea.", "markanswer is a text."
TOOL_MARK = "markpurpose"
CALL_ID = "callmark"
ONE: Call = ("get_markplan", {"place": "markfirst town"})
OTHER: Call = ("get_markplan", {"place": "marksecond town"})
RICH: Call = (
    "make_marktrip",
    {"title": "markthird", "days": 3, "exact": True, "tags": ["a", "b"], "place": {"name": "Bergen"}},
)
# With characters that XML escapes.
ESCAPED: Call = ("make_marktrip", {"title": "markthird", "note": "a < b & c"})
EMPTY: Call = ("show_markclock", {})
_PROPERTIES: tuple[tuple[str, Mapping[str, Any]], ...] = (
    (ONE[0], {"place": {"type": "string"}}),
    (
        RICH[0],
        {
            "title": {"type": "string"},
            "days": {"type": "integer"},
            "exact": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "note": {"type": "string"},
            "place": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
    ),
    (EMPTY[0], {}),
)
SCHEMAS: dict[str, dict[str, Any]] = {
    name: {"type": "object", "properties": properties, "required": list(properties)} for name, properties in _PROPERTIES
}
TOOLS = [
    {"type": "function", "function": {"name": name, "description": TOOL_MARK, "parameters": schema}}
    for name, schema in SCHEMAS.items()
]


@dataclass(frozen=True, slots=True)
class _CallForm:
    """Form of calls in a message: arguments as JSON text, ids that contain the name, and no content beside the calls.

    Templates of Kimi write the id in the place of the name. Others take ids of nine characters alone.
    """

    as_json: bool
    named_id: bool
    without_content: bool


_CALL_FORMS = [
    _CallForm(as_json, named_id, without_content) for without_content, named_id, as_json in product((False, True), repeat=3)
]
_REASONING_KEYS = ("reasoning_content", "reasoning", "thinking", "thought", THINKING_PART)
# A printed list of parts is no text.
_NOTATION = (f"'thinking': '{THOUGHT}", f'"thinking": "{THOUGHT}')
# End of a prompt that opens reasoning: a tag of such a name, or any tag that stands before no answer of an earlier turn.
_REASONING_OPENING = re.compile(r"[<\[◁⟪](?!/)[^<>\[\]◁▷⟪⟫]*(?:think|thought|reason)[^<>\[\]◁▷⟪⟫]*[>\]▷⟫]$", re.IGNORECASE)
_TAG = re.compile(r"[<\[◁⟪【](?!/)[^<>\[\]◁▷⟪⟫【】]+[>\]▷⟫】]")
# Several words are more than the name of a role.
_RULE = re.compile(r"(?:\w+\W+){8}")
PARTIAL_TAG = re.compile(r"[<\[【][^<>\[\]【】]*$")


_NEXT = {"role": "user", "content": _RESULT}


@dataclass(frozen=True, slots=True)
class WrittenTurn:
    """Assistant turn as a template writes it: `opening` is the part that a prompt ends with, `text` the part behind it.

    The other fields are the inputs that `text` shows: empty for those that the template drops.
    """

    opening: str
    text: str
    reasoning: str
    content: str
    calls: tuple[Call, ...]


class TurnWriter:
    """Writes assistant turns with a chat template. A turn ends at the first of `stops` behind the inputs."""

    def __init__(self, template: ChatTemplate, stops: Sequence[str]) -> None:
        self._template = template
        self._stops = tuple(filter(None, stops))

    def check(self) -> None:
        """Render a question, also with tools. Raises the error of the template if it takes neither."""
        if not self._render([_user()]):
            self._template.render([_user()], today=_ANY_DAY)

    def shows_tools(self) -> bool:
        """Return True if the prompt describes tools."""
        return TOOL_MARK in self._render([_user()])

    def write(self, *, calls: Sequence[Call] = (), content: str = "", reasoning: str = "") -> list[WrittenTurn]:
        """Write a turn in the forms that show the most of the inputs; empty if the template shows neither text nor calls."""
        turns = [self._turn(message, calls, content, reasoning) for message in self._messages(calls, content, reasoning)]
        written = [turn for turn in turns if turn is not None]
        most = max(map(_size, written), default=None)
        best = [turn for turn in written if _size(turn) == most]
        return [turn for index, turn in enumerate(best) if turn not in best[:index]]

    @cached_property
    def hidden_calls(self) -> list[WrittenTurn]:
        """Turns that name a call and hide the arguments, as where these are encoded; empty if a turn shows both.

        Empty also if the prompt does not describe the tools.
        """
        if self._call_forms or not self.shows_tools():
            return []
        name, prompt = ONE[0], self._behind_question([_user(), _message(_CALL_FORMS[0], [], ANSWER)])
        turns = []
        for form in _CALL_FORMS:
            whole = self._behind_question([_user(), _message(form, [ONE], "")])
            text = whole[len(opening := _common_opening(self.prompt, whole)) :]
            if whole.count(name) > prompt.count(name) and name in text:
                turns.append(WrittenTurn(opening, self._until_stop(text, text.rindex(name)), "", "", (ONE,)))
        return turns

    def has_call(self, text: str, turns: Sequence[WrittenTurn]) -> bool:
        """Return True if a turn has the call `text`, up to white space."""
        return any("".join(text.split()) in "".join(turn.text.split()) for turn in turns)

    def stop_inside(self, turn: WrittenTurn) -> str:
        """Return the first stop before the end of a turn, or an empty text."""
        return min((stop for stop in self._stops if stop in turn.text), key=turn.text.find, default="")

    def _messages(self, calls: Sequence[Call], content: str, reasoning: str) -> Iterator[dict[str, Any]]:
        """Yield the forms in which templates expect calls and reasoning."""
        for form in self._call_forms if calls else _CALL_FORMS[:1]:
            for key in _REASONING_KEYS if reasoning else ("",):
                message = _message(form, calls, content)
                if key == THINKING_PART:
                    text = [{"type": "text", "text": content}] if content else []
                    message["content"] = [{"type": "thinking", "thinking": reasoning}, *text]
                elif key:
                    message[key] = reasoning
                yield message

    @cached_property
    def _call_forms(self) -> Sequence[_CallForm]:
        """Forms of calls that the template takes. Without content only where the template needs that."""
        forms = [form for form in _CALL_FORMS if self._turn(_message(form, [ONE], ""), [ONE], "", "") is not None]
        return [form for form in forms if not form.without_content] or forms

    def _turn(self, message: dict[str, Any], calls: Sequence[Call], content: str, reasoning: str) -> WrittenTurn | None:
        # Some templates take no answer at the end of a prompt.
        for behind in [[], _outputs(message) if calls else [_NEXT]]:
            turn = self._split(self._behind_question([_user(), message, *behind]), calls, content, reasoning)
            if turn is not None:
                return turn
        return None

    def _split(self, whole: str, calls: Sequence[Call], content: str, reasoning: str) -> WrittenTurn | None:
        if any(notation in whole for notation in _NOTATION):
            return None
        opening = _common_opening(self.prompt, whole)
        text = whole[len(opening) :].partition(_RESULT)[0]
        shown = tuple(call for call in calls if _shows(text, call))
        has_content, has_reasoning = (bool(part) and part in text for part in (content, reasoning))
        if not shown and not has_content:
            return None
        marks = [*(_mark(call) for call in shown), *([content] if has_content else []), *([reasoning] if has_reasoning else [])]
        end = max(text.rfind(mark) + len(mark) for mark in marks)
        text = self._until_stop(text, end)
        text = text[: max(end, len(whole) - len(opening) - len(_shared_rules(self.prompt, whole)))]
        return WrittenTurn(opening, text, reasoning if has_reasoning else "", content if has_content else "", shown)

    def _until_stop(self, text: str, end: int) -> str:
        """Cut `text` at the first stop behind `end`."""
        ends = [at for stop in self._stops if (at := text.find(stop, end)) >= 0]
        return text[: min(ends)] if ends else text

    @cached_property
    def prompt(self) -> str:
        """Text of a prompt behind the question: the end of the turn, and the beginning of the output."""
        return self._behind_question([_user()])

    @cached_property
    def reasoning_opening(self) -> str:
        """Tag with which a prompt opens reasoning, or an empty text."""
        if match := _REASONING_OPENING.search(self.prompt.rstrip()):
            return match[0]
        turns = self.write(content=ANSWER)
        tag = self.prompt.removeprefix(turns[0].opening).strip() if turns else ""
        return tag if _TAG.fullmatch(tag) else ""

    def _behind_question(self, messages: Sequence[Mapping[str, Any]]) -> str:
        return self._render(messages).partition(_QUESTION)[2]

    def _render(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Render messages with tools, or else without; empty if the template rejects the messages."""
        for tools in (TOOLS, []):
            try:
                return self._template.render(messages, today=_ANY_DAY, tools=tools)
            except Exception:  # noqa: S112 (the encoder of a prompt raises anything for messages that it does not take)
                continue
        return ""


def _user() -> dict[str, Any]:
    return {"role": "user", "content": _QUESTION}


def _message(form: _CallForm, calls: Sequence[Call], content: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None if form.without_content and not content else content}
    if calls:
        message["tool_calls"] = [_tool_call(form, call, at) for at, call in enumerate(calls)]
    return message


def _tool_call(form: _CallForm, call: Call, at: int) -> dict[str, Any]:
    name, arguments = call
    call_id = f"functions.{name}:{at}" if form.named_id else f"{CALL_ID}{at}"
    written = json.dumps(arguments) if form.as_json else arguments
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": written}}


def _outputs(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"role": "tool", "tool_call_id": call["id"], "name": _RESULT, "content": _RESULT}
        for call in message.get("tool_calls", ())
    ]


def _mark(call: Call) -> str:
    """Return the text by which a call is recognised: the first argument, or else the name."""
    return str(next(iter(call[1].values()), call[0]))


def _shows(text: str, call: Call) -> bool:
    return call[0] in text and _mark(call) in text


def _size(turn: WrittenTurn) -> tuple[int, bool, bool]:
    return len(turn.calls), bool(turn.content), bool(turn.reasoning)


def _shared_rules(prompt: str, whole: str) -> str:
    """Return the text with which both end, if it has rules for the next answer, as that of Command R+; else an empty text."""
    pairs = zip(reversed(prompt), reversed(whole), strict=False)
    length = next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(prompt), len(whole)))
    same = whole[len(whole) - length :]
    return same if _RULE.search(_TAG.sub("", same)) else ""


def _common_opening(prompt: str, whole: str) -> str:
    """Return the text with which both begin, without a tag that is not the same in both."""
    if whole.startswith(prompt):
        return prompt
    same = next((at for at, (one, other) in enumerate(zip(prompt, whole, strict=False)) if one != other), len(whole))
    return PARTIAL_TAG.sub("", whole[:same])
