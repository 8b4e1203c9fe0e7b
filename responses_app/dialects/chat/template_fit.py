"""Fit of messages to a chat template: inputs that the template has no place for move to a place that the template has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from hashlib import sha256
from secrets import token_hex
from typing import Any

from responses_app.dialects.chat.call_text import (
    IS_OUTPUT,
    CallText,
    Message,
    QuestionNeed,
    content_parts,
    join,
    joined,
    output_message,
    with_object_arguments,
    with_question,
)
from responses_app.dialects.chat.tool_fields import CHANGED_SCHEMAS, ToolField

# The length of call ids that templates of Mistral require.
SHORT_ID = 9
IMAGES_OF_OUTPUT = "Images of the output of {}:"
THINKING_PART = "content part of type thinking"
MARKED_TEXT = "text between the markers of reasoning"
# Stand for the markers while the template is rendered: many templates remove text between the real ones. No client knows these.
_HELD_MARKS = (f"[begin {token_hex(8)}]", f"[end {token_hex(8)}]")
# Stands for the text beside a call. The mark is a word, so that no template changes it.
_TEXT_MARK = f"marktext{token_hex(8)}x"
_TEXT_MARKS = re.compile(rf"{_TEXT_MARK}(\d+)x")


class TextPlace(Enum):
    """Place of the text that an assistant message has beside calls."""

    BESIDE = auto()
    # A message of its own, before the message with the calls.
    BEFORE = auto()
    # Written into the rendered prompt, before the marker with which the calls begin.
    BEFORE_MARKER = auto()
    # The calls are written as text behind it.
    WITH_CALLS_AS_TEXT = auto()


@dataclass(frozen=True, slots=True)
class TemplateFit:
    """Places of inputs in a chat template.

    False for `tools`, `calls` or `outputs` means that the template drops or rejects these. Tools are then described in the system
    message, calls are text of assistant messages, and outputs are user messages. `tool_fields` are those without which the template
    rejects a tool. Without `output_images` the images of outputs follow the outputs in a user message. Without `rules_behind_outputs`
    the template drops the system message where an output ends the prompt: it then joins the last user message. Without `rules_alone`
    it drops or rejects a system message without a user message: it is then the user message. Without `adjacent_questions` roles must
    alternate. Where it needs a user message, by `question`, an empty one stands before answers and calls. `named_ids` are ids of calls
    with the name of the function, which the template writes in place of the name. Without `text_arguments` the template rejects
    arguments that are no object, as those of a call that was cut: the text is then the value of a parameter. `reasoning_key` is the key
    of an assistant message, `content` for markers in the text, `THINKING_PART` for a part of the content, `MARKED_TEXT` for text of the
    content that the template passes on unseen, None for models that do not reason. Without `thoughts_alone` an answer of reasoning
    alone is left out, as the template rejects it. Without `calls_at_end` an empty user message stands behind a call at the end.
    """

    tools: bool = True
    tool_fields: frozenset[ToolField] = frozenset()
    calls: bool = True
    outputs: bool = True
    output_images: bool = True
    rules_behind_outputs: bool = True
    rules_alone: bool = True
    parallel_calls: bool = True
    adjacent_questions: bool = True
    question: QuestionNeed = QuestionNeed.NONE
    text: TextPlace = TextPlace.BESIDE
    arguments_as_json: bool = False
    text_arguments: bool = True
    short_ids: bool = False
    named_ids: bool = False
    reasoning_key: str | None = "reasoning_content"
    thoughts_alone: bool = True
    calls_at_end: bool = True

    def apply(self, messages: Sequence[Message], call_text: CallText, marks: tuple[str, str]) -> list[Message]:
        """Return the messages in the form that the template renders in full."""
        if not self.text_arguments:
            messages = [with_object_arguments(each) if each.get("tool_calls") else each for each in messages]
        if not self.rules_alone and messages[:1] and messages[0]["role"] == "system" and not _has_question(messages):
            messages = [{**messages[0], "role": "user"}, *messages[1:]]
        count, messages = len(messages), with_question(list(messages), self.question)
        if replace(self, text_arguments=True, rules_alone=True, question=QuestionNeed.NONE) == _COMPLETE:
            return messages
        if self.named_ids:
            messages = list(_with_named_ids(messages))
        last_user = max((index for index, each in enumerate(messages) if each["role"] == "user"), default=-1)
        fitted: list[Message] = []
        for index, group in _groups(messages):
            is_current, behind = index > last_user, messages[index + len(group) :][:1]
            # A question behind calls would follow the question before the calls.
            is_asked = bool(behind) and behind[0]["role"] == "user" and bool(group[0].get("tool_calls"))
            as_text = is_asked and not self.adjacent_questions
            if self.text is TextPlace.BEFORE_MARKER and self.calls and not as_text and _has_text_beside_calls(group[0]):
                group = [_with_text_mark(group[0], index - len(messages) + count), *group[1:]]
            if self.reasoning_key == MARKED_TEXT:
                group = [self._with_reasoning(each, _HELD_MARKS, is_current=is_current) for each in group]
            fitted += [
                self._with_reasoning(each, marks, is_current=is_current)
                for each in self._group(group, call_text, as_text=as_text)
            ]
        if not self.thoughts_alone:
            fitted = [each for each in fitted if each["role"] != "assistant" or each["content"] or each.get("tool_calls")]
        if not self.calls_at_end:
            fitted += [{"role": "user", "content": ""} for last in fitted[-1:] if last.get("tool_calls")]
        fitted = joined(fitted, is_strict=not self.adjacent_questions)
        return fitted if self.rules_behind_outputs else _with_rules_in_question(fitted)

    def finish(self, prompt: str, marks: tuple[str, str], messages: Sequence[Message] = (), call_begin: str = "") -> str:
        """Return the rendered prompt with the markers of reasoning, and the texts beside calls of `messages`, in place.

        `call_begin` is the marker with which calls begin.
        """
        if self.text is TextPlace.BEFORE_MARKER:
            prompt = _with_texts(prompt, messages, call_begin)
        if self.reasoning_key != MARKED_TEXT:
            return prompt
        return prompt.replace(_HELD_MARKS[0], marks[0]).replace(_HELD_MARKS[1], marks[1])

    def _group(self, group: Sequence[Message], call_text: CallText, *, as_text: bool) -> Iterator[Message]:
        """Yield the messages for a message and the outputs behind, all calls and outputs `as_text` of both roles."""
        head, outputs = group[0], group[1:]
        if head["role"] == "tool":
            yield from self._outputs(group)
        elif not head.get("tool_calls"):
            yield head
            yield from self._outputs(outputs)
        elif not self.calls:
            yield _as_text(head, call_text)
            yield from self._outputs(outputs)
        elif as_text or (head["content"] and self.text is TextPlace.WITH_CALLS_AS_TEXT):
            yield _as_text(head, call_text)
            yield from map(output_message, outputs)
        else:
            yield from self._with_calls(head, outputs)

    def remarks(self) -> Iterator[str]:
        """Yield the changes in words."""
        fields = ", ".join(field.value for field in ToolField if field in self.tool_fields - CHANGED_SCHEMAS)
        facts = {
            "tools: described in the system message": not self.tools,
            f"tools that lack fields: with empty {fields}": bool(fields),
            "types of parameters: without null": ToolField.PLAIN_TYPE in self.tool_fields,
            "parameters of any type: with an empty schema": ToolField.OBJECT_SCHEMA in self.tool_fields,
            "objects in parameters: with the types of values": ToolField.VALUE_TYPES in self.tool_fields,
            "calls of earlier turns: as text": not self.calls,
            "outputs of calls: as user messages": not self.outputs,
            "images of outputs: in a user message behind": not self.output_images and self.outputs,
            "system message before outputs: in the last user message": not self.rules_behind_outputs,
            "questions in a row: in one user message": not self.adjacent_questions,
            "several calls of a turn: a message for each": not self.parallel_calls and self.calls,
            "text beside a call: in a message before": self.text is TextPlace.BEFORE and self.calls,
            "text beside a call: before the marker of the call": self.text is TextPlace.BEFORE_MARKER and self.calls,
            "text beside a call: with the call as text": self.text is TextPlace.WITH_CALLS_AS_TEXT and self.calls,
            f"call ids: shortened to {SHORT_ID} characters": self.short_ids and self.calls,
            "call ids: with the names of the functions": self.named_ids and self.calls,
            "answers of reasoning alone: left out": not self.thoughts_alone,
            "a call at the end: with an empty user message behind": not self.calls_at_end and self.calls,
            f"reasoning before a call: as {self.reasoning_key}": self.reasoning_key not in ("reasoning_content", None),
        }
        return (remark for remark, holds in facts.items() if holds)

    def _with_reasoning(self, message: Message, marks: tuple[str, str], *, is_current: bool) -> Message:
        text = message.get("reasoning_content")
        if not text or self.reasoning_key in ("reasoning_content", None):
            return message
        message = {key: value for key, value in message.items() if key != "reasoning_content"}
        if self.reasoning_key == THINKING_PART:
            parts = content_parts(message["content"]) if message["content"] else []
            return {**message, "content": [{"type": "thinking", "thinking": text}, *parts]}
        if self.reasoning_key not in ("content", MARKED_TEXT):
            return {**message, self.reasoning_key: text}
        begin, end = marks
        return {**message, "content": f"{begin}\n{text}\n{end}\n\n{message['content']}"} if is_current else message

    def _with_calls(self, message: Message, outputs: Sequence[Message]) -> Iterator[Message]:
        calls = [self._call(call) for call in message["tool_calls"]]
        if message["content"] and self.text is TextPlace.BEFORE:
            yield {key: value for key, value in message.items() if key != "tool_calls"}
            message = {"role": "assistant", "content": ""}
        if self.parallel_calls or len(calls) == 1:
            yield {**message, "tool_calls": calls}
            yield from self._outputs(outputs)
            return
        for index, call in enumerate(calls):
            yield {**(message if index == 0 else {"role": "assistant", "content": ""}), "tool_calls": [call]}
            # The outputs stand in the order of the calls.
            yield from self._outputs(outputs[index : index + 1] if index + 1 < len(calls) else outputs[index:])

    def _call(self, call: Message) -> Message:
        function = call["function"]
        if self.arguments_as_json and not isinstance(function["arguments"], str):
            function = {**function, "arguments": json.dumps(function["arguments"], ensure_ascii=False)}
        return {**call, "id": self._id(call["id"]), "function": function}

    def _outputs(self, outputs: Sequence[Message]) -> Iterator[Message]:
        images: list[Message] = []
        for output in outputs:
            content = output["content"]
            if not self.outputs:
                yield output_message(output)
                continue
            if not self.output_images and not isinstance(content, str):
                images += [{"type": "text", "text": IMAGES_OF_OUTPUT.format(output["name"])}, *_of_type(content, "image")]
                content = "\n".join(part["text"] for part in _of_type(content, "text"))
            yield {**output, "content": content, "tool_call_id": self._id(output["tool_call_id"])}
        if images:
            yield {"role": "user", "content": images, IS_OUTPUT: True}

    def _id(self, call_id: Any) -> Any:
        text = str(call_id)
        if not self.short_ids or (len(text) == SHORT_ID and text.isalnum()):
            return call_id
        return sha256(text.encode(errors="surrogatepass")).hexdigest()[:SHORT_ID]


_COMPLETE = TemplateFit()


def _with_named_ids(messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the messages with the ids that Kimi writes: the name of the function, and the number of the call in the conversation."""
    named: dict[Any, str] = {}
    for message in messages:
        for call in message.get("tool_calls") or ():
            named[call["id"]] = f"functions.{call['function']['name']}:{len(named)}"
        if message.get("tool_calls"):
            yield {**message, "tool_calls": [{**call, "id": named[call["id"]]} for call in message["tool_calls"]]}
        elif message["role"] == "tool":
            yield {**message, "tool_call_id": named.get(message["tool_call_id"], message["tool_call_id"])}
        else:
            yield message


def _groups(messages: Sequence[Message]) -> Iterator[tuple[int, list[Message]]]:
    """Yield the messages with the index of the first, each assistant message with the outputs behind."""
    at = 0
    while at < len(messages):
        end = at + 1
        while messages[at]["role"] == "assistant" and end < len(messages) and messages[end]["role"] == "tool":
            end += 1
        yield at, list(messages[at:end])
        at = end


def _has_text_beside_calls(message: Message) -> bool:
    return bool(message.get("tool_calls")) and isinstance(message["content"], str) and bool(message["content"])


def _with_text_mark(message: Message, index: int) -> Message:
    """Replace the text of the message at `index` by a mark before the name of the first call."""
    first, *others = message["tool_calls"]
    function = {**first["function"], "name": f"{_TEXT_MARK}{index}x{first['function']['name']}"}
    return {**message, "content": "", "tool_calls": [{**first, "function": function}, *others]}


def _with_texts(prompt: str, messages: Sequence[Message], call_begin: str) -> str:
    """Replace each mark of a text by the text, before the marker of calls that the mark stands behind."""
    parts = _TEXT_MARKS.split(prompt)
    done = parts[0]
    for index, part in zip(parts[1::2], parts[2::2], strict=True):
        at = done.rfind(call_begin) if call_begin else -1
        if at < 0:
            return prompt
        done = f"{done[:at]}{messages[int(index)]['content']}{done[at:]}{part}"
    return done


def _as_text(message: Message, call_text: CallText) -> Message:
    calls = call_text([call["function"] for call in message["tool_calls"]])
    text = f"{message['content']}\n\n{calls}" if message["content"] else calls
    return {**{key: value for key, value in message.items() if key != "tool_calls"}, "content": text}


def _has_question(messages: Sequence[Message]) -> bool:
    return any(message["role"] == "user" for message in messages)


def _with_rules_in_question(messages: list[Message]) -> list[Message]:
    """Move the system message into the last user message unless that ends the conversation."""
    questions = [index for index, message in enumerate(messages) if message["role"] == "user"]
    if not questions or messages[0]["role"] != "system" or messages[-1]["role"] == "user":
        return messages
    at = questions[-1]
    question = {**messages[at], "content": join(messages[0]["content"], messages[at]["content"])}
    return [*messages[1:at], question, *messages[at + 1 :]]


def _of_type(content: Sequence[Message], kind: str) -> list[Message]:
    return [part for part in content if part["type"] == kind]
