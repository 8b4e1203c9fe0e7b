"""Chat dialect: prompts by the model's chat template, output by a declared format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any
from weakref import finalize

from responses_app.dialects.base import OutputParser, Turn, UnsupportedInput
from responses_app.dialects.chat.call_text import CallText, describe_tools
from responses_app.dialects.chat.efforts import (
    EFFORTS_WITHOUT_THINKING,
    distinct_efforts,
    effort_variables,
    off_text,
    with_system_text,
)
from responses_app.dialects.chat.parser import ChatParser
from responses_app.dialects.chat.prompt import ImagePlaceholder, SystemMessagePlacement, escape_json, messages, template_tool
from responses_app.dialects.chat.structural_tags import ReasoningStart, constrain
from responses_app.dialects.chat.template import ChatTemplate, TemplateRejected
from responses_app.dialects.chat.template_fit import TemplateFit
from responses_app.dialects.chat.template_probe import TemplateProbe, default_rules
from responses_app.dialects.chat.tool_fields import with_fields
from responses_app.dialects.chat.unknown_calls import UnknownCallFilter
from responses_app.dialects.content import item_type, iter_images
from responses_app.dialects.formats.base import OutputFormat
from responses_app.dialects.formats.call_text import write_calls
from responses_app.dialects.formats.scanner import FormatScanner
from responses_app.dialects.formats.table import DEFAULT_CALLS, DEFAULT_OUTPUT, THINK_FORMAT
from responses_app.dialects.text.budget import Budget
from responses_app.dialects.text.delta_buffer import DeltaBuffer
from responses_app.dialects.text.tokenizer import TokenizerAdapter
from responses_app.dialects.toolset import Tool, Toolset, toolset
from responses_app.engine_interface import Constraint

_PROBE = "\ue0f3"
_ANY_DAY = date(2000, 1, 1)


class ChatDialect:
    """Dialect of a chat model: prompts by the chat template, output by a declared format.

    `always_thinks` is for models that omit the opening marker although their template does not write it, `may_think` for models
    whose template does not show that the model reasons. `supports_images` means that the model accepts images. They are rendered
    by the template, or else by `image_placeholder`.
    """

    def __init__(
        self,
        vocabulary: TokenizerAdapter,
        template: ChatTemplate,
        stop_token_ids: Sequence[int],
        output: OutputFormat = DEFAULT_OUTPUT,
        *,
        always_thinks: bool = False,
        may_think: bool = False,
        supports_images: bool = False,
        image_placeholder: ImagePlaceholder | None = None,
    ) -> None:
        self.stop_token_ids: Sequence[int] = tuple(stop_token_ids)
        self.vocabulary, self.vocabulary_size = vocabulary, vocabulary.size
        self._image_placeholder = image_placeholder if template.image is None else None
        self.supports_images = supports_images and (template.image is not None or self._image_placeholder is not None)
        self._template = template
        self._always_thinks = always_thinks
        self._may_think = may_think
        self._output = output
        self._system_placement = _system_placement(template)
        reasoning = output.reasoning or THINK_FORMAT
        self._marks = (reasoning.begins[0], reasoning.ends[0])
        self._call_text: CallText = partial(write_calls, (output.calls or DEFAULT_CALLS).syntax)
        self._fits = {
            with_tools: TemplateProbe(template, self._marks, self._call_text, with_tools, self._reasons, self._call_begin).fit()
            for with_tools in (True, False)
        }
        self._default_rules = {thinking: default_rules(template, thinking=thinking) for thinking in (True, False)}
        self._texts: dict[int, str] = {}
        self._effort_variables = effort_variables(template)
        self._off_text = off_text(template) if self._reasons else ""
        efforts = distinct_efforts(template, self._effort_variables) if self._reasons else ()
        self.efforts: Sequence[str] = ("none", *efforts) if self._off_text else efforts

    @property
    def _reasons(self) -> bool:
        """Return True if the model may reason."""
        reasoning = self._output.reasoning
        return reasoning is not None and (self._may_think or reasoning.begins[0].strip() in self._template.source)

    @property
    def _call_begin(self) -> str:
        """Marker with which calls begin, empty if calls begin without a marker."""
        calls = self._output.calls
        return next(iter(calls.begins), "") if calls else ""

    @property
    def template(self) -> ChatTemplate:
        """Return the chat template."""
        return self._template

    @property
    def fit(self) -> TemplateFit:
        """Return the fit of prompts with tools to the chat template."""
        return self._fits[True]

    def render(self, turn: Turn, budget: Budget | None = None) -> list[int]:
        """Render the prompt token ids. Raises UnsupportedInput, TooLong, Stopped."""
        try:
            return self.vocabulary.encode(self._text(turn), turn.token_cache, budget)
        except UnicodeEncodeError as error:  # lone surrogates
            raise UnsupportedInput("The input is not valid Unicode.", "input", "invalid_value") from error

    def constrain(self, turn: Turn) -> Constraint | None:
        """Return a structural tag over the whole output, reasoning included. Raises UnsupportedInput."""
        tools = toolset(turn)
        if not tools.offered and turn.format.get("type", "text") == "text":
            # A grammar costs the engine a quarter of its time with a small model.
            return None
        return constrain(turn, tools, self._output, self._reasoning_start(turn))

    def parser_for(self, turn: Turn) -> OutputParser:
        """Create an output parser. With `parallel_tool_calls: false` the parser ends after the first call."""
        deltas, is_json = DeltaBuffer(), turn.format.get("type", "text") != "text"
        scanner = FormatScanner(
            deltas,
            self._output,
            toolset(turn).allows,
            {str(tool["name"]): _parameters(tool) for tool in turn.tools if tool.get("type") == "function"},
            thinking=self._reasoning_start(turn) in (ReasoningStart.OPEN, ReasoningStart.ALWAYS),
            one_call=not turn.parallel_tool_calls,
            plain_text=is_json,
        )
        if self._output.opening and self._text(turn).endswith(self._output.opening):
            scanner.feed(self._output.opening)
        # The strings of JSON have limits of their own.
        most = None if is_json else turn.max_repetitions
        parser = ChatParser(self.vocabulary, self.stop_token_ids, deltas, scanner, most)
        tools = [str(tool["name"]) for tool in toolset(turn).offered] if self._output.keeps_markers and not is_json else []
        return UnknownCallFilter(parser, self._output.unknown_calls, tools) if tools else parser

    def token_text(self, tokens: Sequence[int]) -> str:
        """Decode tokens to text, special tokens included."""
        return b"".join(self.vocabulary.token_bytes(token) for token in tokens).decode(errors="replace")

    def _text(self, turn: Turn) -> str:
        """Return the rendered prompt, cached while the turn exists: rendering, constraint and parser need the text."""
        text = self._texts.get(id(turn))
        if text is None:
            text = self._texts[id(turn)] = self._render_text(turn)
            finalize(turn, self._texts.pop, id(turn), None).atexit = False
        return text

    def _render_text(self, turn: Turn) -> str:
        tools = toolset(turn)
        fit = self._fits[bool(tools.offered)]
        self._check_calls(turn, tools, fit)
        escape = self.vocabulary.escape_special
        try:
            offered = [escape_json(template_tool(tool), escape) for tool in tools.offered]
            is_thinking = turn.effort not in EFFORTS_WITHOUT_THINKING
            tools_text = "" if fit.tools else describe_tools(offered, self._call_text)
            converted = messages(
                turn,
                self._system_placement,
                escape,
                supports_images=self.supports_images,
                image_placeholder=self._image_placeholder,
                tools_text=tools_text,
            )
            if tools_text and converted[0] == {"role": "system", "content": tools_text}:
                # A system message replaces the template's own.
                rules = filter(None, (self._default_rules[is_thinking], tools_text))
                converted[0] = {"role": "system", "content": "\n\n".join(rules)}
            if self._off_text and not is_thinking:
                converted = with_system_text(converted, self._off_text)
            rendered = self._template.render(
                fit.apply(converted, self._call_text, self._marks),
                today=turn.today,
                tools=[with_fields(tool, fit.tool_fields) for tool in offered] if fit.tools else [],
                thinking=is_thinking,
                variables=self._effort_variables.get(turn.effort or ""),
            )
            text = fit.finish(rendered, self._marks, converted, self._call_begin)
        except TemplateRejected as error:
            raise UnsupportedInput(
                f"The model's chat template refuses this input: {error}", "input", "invalid_value"
            ) from error
        except RecursionError as error:
            raise UnsupportedInput("The input is nested too deeply.", "input", "invalid_value") from error
        self._check_images(turn, text)
        return text

    def _check_calls(self, turn: Turn, tools: Toolset, fit: TemplateFit) -> None:
        """Check that tools and calls have a place, or a format to be written in. Raises UnsupportedInput."""
        if self._output.calls is not None:
            return
        if tools.offered and not fit.tools:
            message = "The model's chat template has no place for tools, and the model has no known format for calls."
            raise UnsupportedInput(message, "tools[0]", "unsupported_value")
        calls = [index for index, item in enumerate(turn.items) if item_type(item) == "function_call"]
        if calls and not fit.calls:
            message = "The model's chat template has no place for calls, and the model has no known format for calls."
            raise UnsupportedInput(message, f"input[{calls[0]}]", "unsupported_value")

    def _check_images(self, turn: Turn, text: str) -> None:
        """Check that the prompt has a placeholder for every image. Raises UnsupportedInput.

        Some templates ignore images in tool outputs.
        """
        references = list(iter_images(turn.items)) if self.supports_images else []
        placeholder = self._image_placeholder or (lambda _: self._template.image or "")
        marks = Counter(placeholder(number) for number in range(1, len(references) + 1))
        if any(text.count(mark) != count for mark, count in marks.items()):
            # Templates for images render those of user messages, so report the image of an output first.
            missing = next((image for image in references if ".output[" in image.path), references[0])
            message = f"The model's chat template does not take the image at '{missing.path}'."
            raise UnsupportedInput(message, missing.path, "unsupported_value")

    def _reasoning_start(self, turn: Turn) -> ReasoningStart:
        """Return how the output begins, judged by the end of the prompt.

        Some templates open `<think>`, some close it at once.
        """
        reasoning = self._output.reasoning
        if reasoning is None:
            return ReasoningStart.NEVER
        start, end = reasoning.begins[0], reasoning.ends[0]
        prompt = self._text(turn).rstrip()
        if prompt.endswith(end):
            return ReasoningStart.NEVER
        if prompt.endswith(start.rstrip()):
            return ReasoningStart.OPEN
        if self._always_thinks and turn.effort not in EFFORTS_WITHOUT_THINKING:
            return ReasoningStart.ALWAYS
        return ReasoningStart.FREE if self._reasons else ReasoningStart.NEVER


def _parameters(tool: Tool) -> Mapping[str, Any]:
    schema = tool.get("parameters")
    return schema if isinstance(schema, Mapping) else {}


def _system_placement(template: ChatTemplate) -> SystemMessagePlacement:
    """Find out by rendering where the template allows system messages."""
    user, assistant, system = (
        {"role": role, "content": _PROBE if role == "system" else "x"} for role in ("user", "assistant", "system")
    )
    if _probe_role(template, [system, user, assistant, system, user], 2):
        return SystemMessagePlacement.ANYWHERE
    return SystemMessagePlacement.FIRST if _probe_role(template, [system, user], 1) else SystemMessagePlacement.NOWHERE


def _probe_role(template: ChatTemplate, conversation: Sequence[dict[str, str]], count: int) -> bool:
    try:
        return template.render(conversation, today=_ANY_DAY).count(_PROBE) == count
    except TemplateRejected:
        return False
