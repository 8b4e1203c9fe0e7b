"""Search for the places that a chat template has, by rendering short conversations with marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from responses_app.dialects.chat.call_text import CallText, Message, QuestionNeed
from responses_app.dialects.chat.template import ChatTemplate, TemplateRejected
from responses_app.dialects.chat.template_fit import MARKED_TEXT, THINKING_PART, TemplateFit, TextPlace
from responses_app.dialects.chat.tool_fields import ToolField, without_field

_ANY_DAY = date(2000, 1, 1)
# Marks are words, so that no template changes them.
_USER = {"role": "user", "content": "markquestion"}
_SYSTEM = {"role": "system", "content": "markrules"}
_ANSWER = {"role": "assistant", "content": "markanswer"}
_AGAIN = {"role": "user", "content": "markagain"}
_TOOL_MARKS = ("marktool", "markpurpose", "markcity")
_TOOL = {
    "type": "function",
    "function": {
        "name": "marktool",
        "description": "markpurpose",
        "parameters": {"type": "object", "properties": {"markcity": {"type": "string", "description": "A city."}}},
    },
}
# A call id as this server makes them, which is longer than some templates allow.
_CALL_ID = "call_0123456789abcdef"
_AS_TEXT = {"calls": False, "outputs": False}
_CALL_FORMS: tuple[dict[str, Any], ...] = (
    {},
    {"short_ids": True},
    {"arguments_as_json": True},
    {"short_ids": True, "arguments_as_json": True},
    {"outputs": False},
    {"outputs": False, "arguments_as_json": True},
    {"calls": False},
)
_TEXT_FORMS: tuple[dict[str, Any], ...] = ({}, {"text": TextPlace.BEFORE}, {"text": TextPlace.BEFORE_MARKER})
# Arguments in the notation of Python are no JSON, and a printed list of parts is no text.
_NOTATION = ("'markcity'", "'thinking': 'markthought'", '"thinking": "markthought"')
_KEYS = ("reasoning_content", "reasoning", "thinking", THINKING_PART, "content")


@dataclass(frozen=True, slots=True)
class TemplateProbe:
    """Search for the fit of a template, for prompts with tools or without.

    `marks` begin and end the model's reasoning, `reasons` is False for models without reasoning. `call_text` writes calls in the
    model's output format, which begin with the marker `call_begin`.
    """

    template: ChatTemplate
    marks: tuple[str, str]
    call_text: CallText
    with_tools: bool
    reasons: bool = True
    call_begin: str = ""

    def fit(self) -> TemplateFit:
        """Find the fit. The first form of an input that the prompt shows in full is taken."""
        fit = TemplateFit(adjacent_questions=self._takes_adjacent_questions())
        if self.with_tools and not self._renders_tools():
            fit = replace(fit, tools=False)
        if self.with_tools and fit.tools:
            fit = replace(fit, tool_fields=frozenset(field for field in ToolField if self._needs(field)))
        fit = self._choose(fit, _CALL_FORMS, _AS_TEXT, _loop(1), ("marktool", "markfirst"))
        if fit.calls and not self._names_calls(fit):
            named = replace(fit, named_ids=True)
            fit = named if self._names_calls(named) else replace(fit, calls=False)
        fit = replace(fit, text_arguments=not fit.calls or self._takes_text_arguments(fit))
        fit = self._choose(fit, ({}, {"outputs": False}), _AS_TEXT, _loop(1), ("markfirst", "resultfirst"))
        if self.template.image is not None and fit.outputs:
            fit = replace(fit, output_images=self._renders_output_images(fit))
        alone = self._render([_SYSTEM], tools=self.with_tools and fit.tools)
        fit = replace(fit, rules_behind_outputs=self._keeps_rules(fit), rules_alone=str(_SYSTEM["content"]) in alone)
        two = ("markfirst", "marksecond", "resultfirst", "resultsecond")
        fit = self._choose(fit, ({}, {"parallel_calls": False}), _AS_TEXT, _loop(2), two)
        as_text = {"text": TextPlace.WITH_CALLS_AS_TEXT}
        fit = self._choose(fit, _TEXT_FORMS, as_text, _loop(1, "markbeside"), ("markbeside", "markfirst", "resultfirst"))
        keys = [{"reasoning_key": key} for key in _KEYS if key != "content" or self._opens_reasoning_only()]
        keys += [{"reasoning_key": MARKED_TEXT}] if self.reasons else []
        thought = _loop(1, reasoning="markthought")[:3]
        fit = self._choose(fit, keys, {"reasoning_key": None}, thought, ("markthought", "markfirst", "resultfirst"))
        fit = replace(fit, question=self._needed_question(fit))
        fit = replace(fit, thoughts_alone=self._takes_thoughts_alone(fit))
        open_call, last = _loop(1)[:2], replace(fit, calls_at_end=False)
        return last if self._keeps(last, open_call) and not self._keeps(fit, open_call) else fit

    def _choose(
        self,
        fit: TemplateFit,
        forms: Sequence[dict[str, Any]],
        otherwise: dict[str, Any],
        conversation: Sequence[Message],
        expected: Sequence[str],
    ) -> TemplateFit:
        """Return the fit with the first form whose prompts show the expected marks, in a tool loop and after it."""
        for form in forms:
            candidate = replace(fit, **form)
            if all(self._shows(candidate, messages, expected) for messages in _lengths(conversation)):
                return candidate
        return replace(fit, **otherwise)

    def _shows(self, fit: TemplateFit, messages: Sequence[Message], expected: Sequence[str]) -> bool:
        rendered = self._render(fit.apply(messages, self.call_text, self.marks), tools=self.with_tools and fit.tools)
        text = fit.finish(rendered, self.marks, messages, self.call_begin)
        if not fit.tools and not self._has_described_form(text):
            return False
        # The description of tools may be in the notation of Python.
        turns = text[text.rfind(str(_USER["content"])) :] if str(_USER["content"]) in text else text
        return all(mark in text for mark in expected) and not any(name in turns for name in _NOTATION)

    def _has_described_form(self, text: str) -> bool:
        """Return True if calls have the form in which the server describes calls to the model, up to white space.

        Where markers stand around several calls, the form of the first alone is no part of the text.
        """
        calls = [_call(name)["function"] for name in ("first", "second")]
        forms = (self.call_text(calls[:count]) for count in (1, 2))
        return any("".join(form.split()) in "".join(text.split()) for form in forms)

    def _opens_reasoning_only(self) -> bool:
        """Return True if the template opens the reasoning of the output and has no rule for the reasoning of the input."""
        begin, end = self.marks
        return begin in self.template.source and end not in self.template.source

    def _renders_tools(self) -> bool:
        conversations = ([_USER], [_SYSTEM, _USER], _loop(1)[:3])
        texts = [
            self._render(TemplateFit(short_ids=True).apply(each, self.call_text, self.marks), tools=True)
            for each in conversations
        ]
        # A template may reject system messages or calls.
        return bool(texts[0]) and all(mark in text for text in texts if text for mark in _TOOL_MARKS)

    def _takes_adjacent_questions(self) -> bool:
        """Return True if the template takes user messages in a row, or none behind an answer either."""
        try:
            text = self.template.render([_USER, _AGAIN], today=_ANY_DAY)
        except TemplateRejected:
            return not self._render([_USER, _ANSWER, _AGAIN], tools=False)
        return all(str(each["content"]) in text for each in (_USER, _AGAIN))

    def _needed_question(self, fit: TemplateFit) -> QuestionNeed:
        """Return the need for a user message, without which the template drops or rejects answers and calls."""
        loop, asked = _loop(1)[1:3], replace(fit, question=QuestionNeed.FIRST)
        for need, end in ((QuestionNeed.FIRST, [_ANSWER, _AGAIN]), (QuestionNeed.ANYWHERE, [])):
            for messages in ([_ANSWER, _AGAIN][: len(end) or 1], [*loop, *end]):
                if not self._keeps(fit, messages) and self._keeps(asked, messages):
                    return need
        return QuestionNeed.NONE

    def _keeps(self, fit: TemplateFit, messages: Sequence[Message]) -> bool:
        """Return True if a prompt has the texts of all messages and the arguments of the calls."""
        rendered = self._render(fit.apply(messages, self.call_text, self.marks), tools=self.with_tools and fit.tools)
        text = fit.finish(rendered, self.marks, messages, self.call_begin)
        marks = [str(each["content"] or "markfirst") for each in messages]
        return all(mark in text for mark in marks)

    def _takes_thoughts_alone(self, fit: TemplateFit) -> bool:
        """Return True if the template takes an answer of reasoning alone, or no conversation with an answer."""
        thought = {**_ANSWER, "content": "", "reasoning_content": "markthought"}
        takes = [
            bool(
                self._render(
                    fit.apply([_USER, answer, _AGAIN], self.call_text, self.marks), tools=self.with_tools and fit.tools
                )
            )
            for answer in (thought, _ANSWER)
        ]
        return takes[0] or not takes[1]

    def _needs(self, field: ToolField) -> bool:
        """Return True if the template rejects a tool without `field`."""
        try:
            return not self.template.render([_USER], today=_ANY_DAY, tools=[without_field(_TOOL, field)])
        except (TemplateRejected, RecursionError):
            return True

    def _names_calls(self, fit: TemplateFit) -> bool:
        """Return True if a call has the name of its function, which outputs may have too."""
        messages = [{**each, "name": "markother"} if each["role"] == "tool" else each for each in _loop(1)[:3]]
        text = self._render(fit.apply(messages, self.call_text, self.marks), tools=self.with_tools and fit.tools)
        return "marktool" in text.rpartition(str(_USER["content"]))[2]

    def _takes_text_arguments(self, fit: TemplateFit) -> bool:
        """Return True if the template writes arguments that are no object."""
        question, message, output = _loop(1)[:3]
        call = message["tool_calls"][0]
        call = {**call, "function": {**call["function"], "arguments": "marktext {"}}
        messages = fit.apply([question, {**message, "tool_calls": [call]}, output], self.call_text, self.marks)
        return "marktext" in self._render(messages, tools=self.with_tools and fit.tools)

    def _keeps_rules(self, fit: TemplateFit) -> bool:
        """Return True if the system message that stands before a question stands before an output too."""
        question, output = (
            self._render(fit.apply([_SYSTEM, *each], self.call_text, self.marks), tools=self.with_tools and fit.tools)
            for each in ([_USER], _loop(1)[:3])
        )
        rules = str(_SYSTEM["content"])
        return rules not in question or not output or rules in output

    def _renders_output_images(self, fit: TemplateFit) -> bool:
        """Return True if the template writes the placeholder of an image in an output, behind the text of the output."""
        parts = [{"type": "text", "text": "resultfirst"}, {"type": "image"}]
        messages = [{**each, "content": parts} if each["role"] == "tool" else each for each in _loop(1)]
        text = self._render(fit.apply(messages, self.call_text, self.marks), tools=self.with_tools and fit.tools)
        return str(self.template.image) in text.partition("resultfirst")[2]

    def _render(self, messages: Sequence[Message], *, tools: bool) -> str:
        """Render messages; empty if the template rejects the messages."""
        try:
            return self.template.render(messages, today=_ANY_DAY, tools=[_TOOL] if tools else [])
        except TemplateRejected:
            return ""


def default_rules(template: ChatTemplate, *, thinking: bool) -> str:
    """Return the text that a template writes in the place of a missing system message; empty if the template writes none."""
    try:
        named, bare = (template.render(messages, today=_ANY_DAY, thinking=thinking) for messages in ([_SYSTEM, _USER], [_USER]))
    except TemplateRejected:
        return ""
    before, mark, behind = named.partition(str(_SYSTEM["content"]))
    has_place = mark and bare.startswith(before) and bare.endswith(behind) and len(bare) > len(before) + len(behind)
    return bare[len(before) : len(bare) - len(behind)].strip() if has_place else ""


def _lengths(conversation: Sequence[Message]) -> Iterator[Sequence[Message]]:
    """Yield the conversation without the turns after the outputs, and as a whole."""
    ends = [index for index, message in enumerate(conversation) if message["role"] == "tool"]
    yield conversation[: ends[-1] + 1]
    if ends[-1] + 1 < len(conversation):
        yield conversation


def _loop(count: int, text: str = "", reasoning: str = "") -> list[Message]:
    """Return a conversation with `count` calls in a message, the outputs, an answer and a further question."""
    names = ("first", "second")[:count]
    calls = [
        {
            "id": f"{_CALL_ID}{name}",
            "type": "function",
            "function": {"name": "marktool", "arguments": {"markcity": f"mark{name}"}},
        }
        for name in names
    ]
    outputs = [
        {"role": "tool", "tool_call_id": f"{_CALL_ID}{name}", "name": "marktool", "content": f"result{name}"} for name in names
    ]
    message: Message = {"role": "assistant", "content": text, "tool_calls": calls}
    if reasoning:
        message["reasoning_content"] = reasoning
    return [_USER, message, *outputs, _ANSWER, _AGAIN]


def _call(name: str) -> Message:
    function = {"name": "marktool", "arguments": {"markcity": f"mark{name}"}}
    return {"id": f"{_CALL_ID}{name}", "type": "function", "function": function}
