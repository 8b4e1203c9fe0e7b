"""Variants of declared formats, chosen by the added tokens of a tokenizer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from responses_app.dialects.formats.base import CallFormat, OutputFormat, ReasoningFormat
from responses_app.dialects.formats.call_formats import json_object_calls
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
