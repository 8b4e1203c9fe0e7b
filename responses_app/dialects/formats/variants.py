"""Variants of declared formats, chosen by the added tokens of a tokenizer or by the calls that a template writes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from responses_app.dialects.formats.base import CallFormat, OutputFormat, ReasoningFormat
from responses_app.dialects.formats.call_formats import json_object_calls
from responses_app.dialects.formats.syntaxes.json_calls import JsonCalls
from responses_app.dialects.formats.syntaxes.named_calls import MistralCalls
from responses_app.dialects.formats.table import CALLS, GIGACHAT_ROLE
from responses_app.dialects.formats.xml_syntaxes.keyed_xml_calls import KeyedXmlCalls

# Suffixes of Hunyuan's markers, for example `<tool_call:opensource>`.
_SUFFIX = re.compile(r"<tool_call(:[^\s<>]+)>")


def fit_to_tokens(output: OutputFormat, added_tokens: Collection[str]) -> OutputFormat:
    """Return `output` in the variant that a tokenizer with `added_tokens` writes."""
    syntax = output.calls and output.calls.syntax
    if isinstance(syntax, MistralCalls) and "[ARGS]" not in added_tokens:
        # Lists of the old form.
        return replace(output, calls=CallFormat(MistralCalls(is_list=True), ("[TOOL_CALLS]",)))
    if output.calls == CALLS["gigachat3"] and "<|function_call|>" not in added_tokens:
        # Messages with a role of their own, before the token existed.
        return replace(output, calls=json_object_calls(f"<|message_sep|>\n\n{GIGACHAT_ROLE}\n", "", GIGACHAT_ROLE))
    if isinstance(syntax, KeyedXmlCalls) and syntax.has_section:
        return _with_suffix(output, syntax, next(_suffixes(added_tokens), ""))
    return output


def fit_to_calls(output: OutputFormat, texts: Collection[str]) -> OutputFormat:
    """Return `output` with calls without the line breaks that the `texts` of calls lack, as those of EXAONE."""
    calls = output.calls
    if calls is None or not isinstance(calls.syntax, JsonCalls) or calls.syntax.is_block:
        return output
    begin, end = calls.syntax.begin.rstrip("\n"), calls.syntax.end.lstrip("\n")
    if not begin or any(calls.syntax.begin in text for text in texts) or not any(f"{begin}{{" in text for text in texts):
        return output
    return replace(output, calls=replace(calls, syntax=replace(calls.syntax, begin=begin, end=end)))


def _suffixes(added_tokens: Collection[str]) -> Iterator[str]:
    return (match[1] for match in map(_SUFFIX.fullmatch, added_tokens) if match)


def _with_suffix(output: OutputFormat, syntax: KeyedXmlCalls, suffix: str) -> OutputFormat:
    """Return `output` with `suffix` in every marker."""
    if not suffix:
        return output
    changed = replace(syntax, suffix=suffix)
    calls = CallFormat(changed, (changed.section[0], changed.begin), (changed.section[1], changed.end))
    reasoning = ReasoningFormat((f"<think{suffix}>",), (f"</think{suffix}>",)) if output.reasoning else None
    return replace(output, calls=calls, reasoning=reasoning)
