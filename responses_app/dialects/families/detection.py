"""Detection of a model's family from evidence, and of the parsers for the output."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from responses_app.dialects.families.family import Family
from responses_app.dialects.families.parser_names import ALIASES, NO_PARSER, RESPONSE_TEMPLATE, check_names
from responses_app.dialects.families.table import FAMILIES
from responses_app.dialects.families.typed_table import TYPED_FAMILIES

UNKNOWN = Family("unknown", None)


class Source(StrEnum):
    """Kind of evidence that decided."""

    SETTING = "setting"
    TYPE_AND_TEMPLATE = "model_type and chat template"
    TEMPLATE = "chat template"
    ADDED_TOKENS = "added tokens"
    MODEL_TYPE = "model_type"
    ARCHITECTURE = "architecture"
    FILES = "files"
    NAME = "name"
    DEFAULT = "default"
    READ_BACK = "reading what the chat template writes"
    RESPONSE_TEMPLATE = "response_template"


# Evidence of markers alone.
_MARKERS = (Source.TEMPLATE, Source.ADDED_TOKENS)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Facts about a checkpoint. `templates` holds every chat template; the parsers are named by the operator."""

    name: str = ""
    model_type: str = ""
    architectures: Sequence[str] = ()
    templates: Sequence[str] = ()
    added_tokens: Collection[str] = ()
    files: Collection[str] = ()
    reasoning_parser: str | None = None
    tool_parser: str | None = None

    @property
    def template(self) -> str:
        """Return the text of all chat templates."""
        return "\n".join(self.templates)


class ReadBack(StrEnum):
    """Result of reading calls or reasoning that the chat template has written."""

    EQUAL = "equal"
    DIFFERENT = "different"
    NOT_WRITTEN = "not_written"
    NOT_CHECKED = "not_checked"


@dataclass(frozen=True, slots=True)
class Detection:
    """Family of a model with the parsers. `evidence` are the facts that decided, `warnings` are for the operator.

    `named` are the parsers that the operator has named. `alternatives` are the families that fit less well, with their parsers.
    `is_confirmed`: the model type, the architecture, a file or the name is evidence for the family, not markers alone.
    """

    family: str
    reasoning_parser: str | None
    tool_parser: str | None
    chosen_by: str
    evidence: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    remark: str = ""
    calls: ReadBack = ReadBack.NOT_CHECKED
    reasoning: ReadBack = ReadBack.NOT_CHECKED
    named: frozenset[str] = frozenset()
    alternatives: tuple[tuple[str, str | None, str | None], ...] = ()
    is_confirmed: bool = False

    @property
    def is_unknown(self) -> bool:
        """Return True if nothing has decided."""
        return self.family == UNKNOWN.name

    @property
    def by_template(self) -> frozenset[str]:
        """Return the settings with which the operator has named the response template of the checkpoint."""
        return frozenset(key for key in self.named if getattr(self, key) == RESPONSE_TEMPLATE)

    def without_template(self) -> Detection:
        """Return the detection without the parsers that the response template has yet to name."""
        return replace(self.with_parsers(dict.fromkeys(self.by_template)), named=self.named - self.by_template)

    def with_parsers(self, parsers: Mapping[str, str | None]) -> Detection:
        """Return the detection with other parsers, by the names of their settings."""
        reasoning, tools = (parsers.get(key, getattr(self, key)) for key in ("reasoning_parser", "tool_parser"))
        return replace(self, reasoning_parser=reasoning, tool_parser=tools)

    def summary(self) -> str:
        """Return a line with the family, the parsers, and the evidence."""
        parsers = f"reasoning parser {self.reasoning_parser or 'none'}, tool parser {self.tool_parser or 'none'}"
        marks = f": {' '.join(self.evidence)}" if self.evidence else ""
        return f"{self.family} ({parsers}), chosen by {self.chosen_by}{marks}"

    def as_json(self) -> dict[str, object]:
        """Return the object `family` of a model in the API."""
        return {
            "name": self.family,
            "reasoning_parser": self.reasoning_parser,
            "tool_parser": self.tool_parser,
            "chosen_by": self.chosen_by,
            "evidence": list(self.evidence),
            "warnings": list(self.warnings),
            "read_back": {"calls": str(self.calls), "reasoning": str(self.reasoning)},
        }


@dataclass(frozen=True, slots=True)
class _Match:
    family: Family
    source: Source
    marks: tuple[str, ...] = ()


def detect(evidence: Evidence) -> Detection:
    """Detect the family of a model. Parsers that the operator has named replace the detected parsers, each separately.

    Raises ValueError for unknown names.
    """
    check_names(evidence.reasoning_parser, evidence.tool_parser)
    match, *others = [*_matches(evidence), _Match(UNKNOWN, Source.DEFAULT)]
    alternatives = ((each.family.name, _reasoning_parser(each.family, evidence)[0], each.family.tool_parser) for each in others)
    is_confirmed = any(each.family.name == match.family.name and each.source not in _MARKERS for each in (match, *others))
    detection = _detection(match, evidence)
    detection = replace(detection, alternatives=tuple(dict.fromkeys(alternatives)), is_confirmed=is_confirmed)
    return _with_named_parsers(detection, evidence)


def _matches(evidence: Evidence) -> Iterator[_Match]:
    rules: tuple[Callable[[Evidence], Iterator[_Match]], ...] = (
        _by_type_and_template,
        _by_template,
        _by_added_tokens,
        _by_model_type,
        _by_architecture,
        _by_files,
        _by_name,
    )
    for rule in rules:
        yield from rule(evidence)


def _by_type_and_template(evidence: Evidence) -> Iterator[_Match]:
    for family in TYPED_FAMILIES:
        if _has_type(family, evidence.model_type) and _has_markers(family, evidence.template):
            source = Source.TYPE_AND_TEMPLATE if family.markers else Source.MODEL_TYPE
            yield _Match(family, source, (evidence.model_type, *family.markers))


def _by_template(evidence: Evidence) -> Iterator[_Match]:
    for family in FAMILIES:
        if family.markers and _has_markers(family, evidence.template):
            yield _Match(family, Source.TEMPLATE, family.markers)


def _by_added_tokens(evidence: Evidence) -> Iterator[_Match]:
    for family in FAMILIES:
        if family.markers and not family.template_only and _has_markers(family, evidence.added_tokens):
            yield _Match(family, Source.ADDED_TOKENS, family.markers)


def _by_model_type(evidence: Evidence) -> Iterator[_Match]:
    for family in FAMILIES:
        if _has_type(family, evidence.model_type):
            yield _Match(family, Source.MODEL_TYPE, (evidence.model_type,))


def _by_architecture(evidence: Evidence) -> Iterator[_Match]:
    for name in evidence.architectures:
        for family in (*(typed for typed in TYPED_FAMILIES if not typed.markers), *FAMILIES):
            if _is_architecture(family, name):
                yield _Match(family, Source.ARCHITECTURE, (name,))


def _by_files(evidence: Evidence) -> Iterator[_Match]:
    for family in FAMILIES:
        if matched_files := tuple(file for file in family.files if file in evidence.files):
            yield _Match(family, Source.FILES, matched_files)


def _by_name(evidence: Evidence) -> Iterator[_Match]:
    name = evidence.name.lower().replace("_", "-")
    for family in FAMILIES:
        if family.names and (match := re.search(family.names, name)):
            yield _Match(family, Source.NAME, (match[0],))


def _has_type(family: Family, model_type: str) -> bool:
    return bool(family.model_types and re.fullmatch(family.model_types, model_type))


def _is_architecture(family: Family, name: str) -> bool:
    """Compare an architecture such as `Glm4MoeForCausalLM` with the model types, without underscores."""
    return bool(family.model_types) and bool(
        re.fullmatch(family.model_types.replace("_", ""), name.partition("For")[0].lower())
    )


def _has_markers(family: Family, place: Collection[str]) -> bool:
    return all(mark in place for mark in family.markers) and not any(mark in place for mark in family.without)


def _detection(match: _Match, evidence: Evidence) -> Detection:
    family = match.family
    reasoning, reasoning_marks = _reasoning_parser(family, evidence)
    marks = tuple(dict.fromkeys((*match.marks, *reasoning_marks)))
    warnings = tuple(_family_warnings(family, evidence))
    return Detection(family.name, reasoning, family.tool_parser, str(match.source), marks, warnings, family.remark)


def _reasoning_parser(family: Family, evidence: Evidence) -> tuple[str | None, list[str]]:
    """Return the reasoning parser of a family for these templates, with the marker that shows the reasoning."""
    if not family.reasoning_markers or not evidence.templates:
        return family.reasoning_parser, []
    reasoning_marks = [mark for mark in family.reasoning_markers if mark in evidence.template][:1]
    return family.reasoning_parser if reasoning_marks else None, reasoning_marks


def _family_warnings(family: Family, evidence: Evidence) -> Iterator[str]:
    if family is UNKNOWN and None in (evidence.reasoning_parser, evidence.tool_parser):
        kind = f"model_type {evidence.model_type!r}" if evidence.model_type else "a model without config.json"
        yield (
            f"The family of the model is not recognised ({kind}): only <think> reasoning and <tool_call> JSON calls are parsed, "
            "other calls of this model will be shown as text. Name the parsers with reasoning_parser and tool_parser."
        )


def _with_named_parsers(detection: Detection, evidence: Evidence) -> Detection:
    """Replace the parsers that the operator has named."""
    named = {"reasoning_parser": evidence.reasoning_parser, "tool_parser": evidence.tool_parser}
    named = {key: value for key, value in named.items() if value is not None}
    if not named:
        return detection
    is_complete = len(named) == 2
    return replace(
        detection,
        reasoning_parser=_named(evidence.reasoning_parser, detection.reasoning_parser),
        tool_parser=_named(evidence.tool_parser, detection.tool_parser),
        chosen_by=str(Source.SETTING) if is_complete else f"{Source.SETTING} and {detection.chosen_by}",
        evidence=(*(f"{key}={value}" for key, value in named.items()), *(() if is_complete else detection.evidence)),
        warnings=() if is_complete else detection.warnings,
        named=frozenset(named),
    )


def _named(setting: str | None, detected: str | None) -> str | None:
    return detected if setting is None else None if setting == NO_PARSER else ALIASES.get(setting, setting)
