"""Report on a model: family, parsers, features of the chat template, stop tokens, and a rendered example."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from responses_app.dialects.base import Dialect, Turn, UnsupportedInput
from responses_app.dialects.chat.dialect import ChatDialect
from responses_app.dialects.chat.template_features import TemplateFeatures, template_features
from responses_app.dialects.checkpoint import Checkpoint
from responses_app.dialects.families.detection import Detection, ReadBack
from responses_app.dialects.registry import open_checkpoint
from responses_app.dialects.sampling_defaults import SamplingDefaults

_HARMONY = TemplateFeatures(thinking_variables=("reasoning_effort",), can_switch_thinking=True)
_QUESTION = {"type": "message", "role": "user", "content": "What is the weather in Oslo?"}
_WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Get the weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
_CONVERSATION = (
    _QUESTION,
    {"type": "function_call", "call_id": "call00001", "name": "get_weather", "arguments": '{"city": "Oslo"}'},
    {"type": "function_call_output", "call_id": "call00001", "output": "Sunny, 7 °C"},
)


@dataclass(frozen=True, slots=True)
class ModelReport:
    """Facts about a model. `stop_tokens` are ids with texts; `example` is a prompt, `example_problem` why there is none."""

    source: str
    family: Detection
    features: TemplateFeatures
    stop_tokens: tuple[tuple[int, str], ...]
    example: str
    example_problem: str = ""
    # Inputs without a place in the template, and the form in which the server adds these.
    added: tuple[str, ...] = ()
    defaults: SamplingDefaults = field(default_factory=SamplingDefaults)

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report."""
        family, features = self.family, self.features
        yield f"model             {self.source}"
        yield f"family            {family.family}"
        yield f"chosen by         {family.chosen_by}{': ' + ' '.join(family.evidence) if family.evidence else ''}"
        yield f"reasoning parser  {family.reasoning_parser or 'none'}"
        yield f"tool parser       {family.tool_parser or 'none'}"
        yield f"calls read        {_WORDS[family.calls]}"
        yield f"reasoning read    {_WORDS[family.reasoning]}"
        if family.remark:
            yield f"remark            {family.remark}"
        yield from (f"warning           {warning}" for warning in family.warnings)
        yield f"system messages   {_yes(features.system)}"
        yield f"tools             {_yes(features.tools)}"
        yield f"parallel calls    {_yes(features.parallel_calls)}"
        yield f"images            {_yes(features.images)}"
        yield f"thinking          {_thinking(family, features)}"
        yield f"sampling          {self.defaults.summary()}"
        if self.defaults.warning:
            yield f"warning           {self.defaults.warning}"
        yield f"stop tokens       {', '.join(f'{text} ({token})' for token, text in self.stop_tokens)}"
        yield f"no place for      {', '.join(features.missing()) or 'nothing: all inputs are rendered'}"
        yield from (f"added             {remark}" for remark in self.added)
        yield f"example           {self.example_problem}".rstrip()
        yield from (f"    {line}" for line in self.example.splitlines())


def report(
    source: str, reasoning_parser: str | None = None, tool_parser: str | None = None, chat_template: str | None = None
) -> ModelReport:
    """Open the checkpoint of a folder or hub name without an engine. Raises ValueError, OSError, and errors of Jinja."""
    checkpoint = Checkpoint(source, chat_template)
    defaults = SamplingDefaults.read(checkpoint.path("generation_config.json"))
    dialect, family = open_checkpoint(checkpoint, checkpoint.detect_family(reasoning_parser, tool_parser))
    features = _HARMONY
    added: tuple[str, ...] = ()
    if isinstance(dialect, ChatDialect):
        added = tuple(dialect.fit.remarks())
        features = replace(template_features(dialect.template), images=dialect.supports_images)
    stop_tokens = tuple((token, dialect.token_text([token])) for token in dialect.stop_token_ids)
    example, problem = _example(dialect, features)
    return ModelReport(source, family, features, stop_tokens, example, problem, added, defaults)


def _example(dialect: Dialect, features: TemplateFeatures) -> tuple[str, str]:
    """Return a rendered conversation with a call, or a single question for a model that takes no calls."""
    problem = ""
    for inputs in ({"items": _CONVERSATION, "tools": [_WEATHER]}, {"items": [_QUESTION]}):
        turn = Turn(today=datetime.now(UTC).date(), instructions="You are helpful." if features.system else None, **inputs)
        try:
            return dialect.token_text(dialect.render(turn)), ""
        except UnsupportedInput as error:
            problem = str(error)
    return "", problem


_WORDS = {
    ReadBack.EQUAL: "yes: the form of the template is read back",
    ReadBack.DIFFERENT: "no: shown as text",
    ReadBack.NOT_WRITTEN: "not checked: the chat template writes none, or describes no tools",
    ReadBack.NOT_CHECKED: "not checked",
}


def _yes(fact: bool) -> str:
    return "yes" if fact else "no"


def _thinking(family: Detection, features: TemplateFeatures) -> str:
    if family.reasoning_parser is None and not features.thinking_variables:
        return "no"
    names = ", ".join(features.thinking_variables)
    switch = f"switched by {names}" if features.can_switch_thinking and names else "always" if family.reasoning_parser else "no"
    return f"{switch}; the prompt opens the reasoning" if features.opens_thinking else switch
