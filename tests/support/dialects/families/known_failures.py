"""Known failures of families: the cases that are wrong now, with the reason. A mended case must be removed here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

import pytest

from tests.support.dialects.families.cases import OutputCase, cases
from tests.support.dialects.families.formats.registry import FAMILIES
from tests.support.dialects.families.prompts import prompts


def _each(*patterns: str, of: tuple[str, ...]) -> Iterator[str]:
    """Yield the patterns of each family; `*` before the slash is the family."""
    return (family + pattern[1:] for family in of for pattern in patterns)


# Patterns of `family/case` by reason. Cases of other tests have a prefix: `chunking:`, `letters:`, `prompt:`, `cut:`.
KNOWN_FAILURES: Mapping[str, tuple[str, ...]] = {
    "Tokens that are special in tokenizer.json alone are hidden from vLLM's parsers": (
        *_each("*/call*", "*/*_call", "*/*_calls", "*/*three_kinds", of=("devstral", "apertus", "lfm2")),
        *_each("*/reasoning_and_*", "*/call_without_*", of=("ministral-3-reasoning", "gemma-4")),
        *_each("*/call*", "*/*_call", of=("internlm2.5",)),
        "lfm2.5-thinking/reasoning_and_*call*",
        "lfm2.5-thinking/reasoning_and_three_kinds",
        "granite-3.3/call_without_thinking",
    ),
    "The same hidden tokens; vLLM's parser then reads [CALL_ID] as a part of the name": (
        *_each("*/call*", "*/*_call", "*/*_calls", "*/*three_kinds", of=("mistral-small-3.2",)),
    ),
    "The same hidden tokens; lists of calls after [TOOL_CALLS] go by the code of vLLM's parser that reads these": (
        *_each("*/call*", "*/*_call", "*/*_calls", "*/*three_kinds", of=("mistral-nemo",)),
    ),
    "Without a reasoning parser, vLLM's engine begins in the state of reasoning": (
        *_each("*/text", "*/text_and_call", of=("qwen3-coder", "kimi-k2")),
    ),
    "vLLM's parser takes text without <think> for reasoning": (
        "mimo-v2.5/text_without_reasoning",
        "lfm2.5-thinking/*_without_reasoning",
    ),
    "vLLM's parser gives no arguments for an empty object": (
        *_each("*/call_without_arguments", of=("llama-3.1", "llama-3.2", "llama-3.3", "functiongemma")),
    ),
    "vLLM's parser reads strings alone, so nested arguments, numbers and booleans become invalid JSON": (
        "functiongemma/nested_call",
        "functiongemma/three_kinds",
    ),
    "vLLM's reasoning parser knows `Here is my thought process` instead of <think> and <response>": (
        "granite-3.3/reasoning_and_*",
        "granite-3.3/text_without_thinking",
    ),
    "No parser in vLLM reads <TOOLCALL>": ("nemotron-nano-v2/*call*", "nemotron-nano-v2/*three_kinds"),
    "vLLM's parser does not stream: text and calls are lost": ("phi-4-mini/*",),
    "vLLM's parser needs the package cohere_melody": ("command-r7b/*",),
    "vLLM's parsers do not find <think>, <answer> and <tool_calls> in this output": ("hunyuan-a13b/*",),
    "vLLM's parser does not find <function_calls> behind white space": (
        "olmo-3-think/*call*",
        "olmo-3-think/*three_kinds",
    ),
    "A call that is cut inside its name becomes a call of another name": (
        *_each("*/cut:items", of=("qwen3-coder", "qwen3.5", "nemotron-3", "step-3.5", "trinity", "mimo-v2.5", "seed-oss")),
        *_each("*/cut:items", of=("kimi-k2", "kimi-k2-thinking", "plamo-3")),
    ),
    "The same calls of another name; a marker that is cut becomes text": (
        *_each("*/cut:items", of=("deepseek-v3.2", "deepseek-v4", "deepseek-v4.1", "minimax-m3")),
    ),
    "The whole output is wrong already": (
        *_each("*/cut:items", of=("mistral-nemo", "mistral-small-3.2", "devstral", "ministral-3-reasoning", "gemma-4")),
        *_each("*/cut:items", of=("functiongemma", "granite-3.3", "nemotron-nano-v2", "phi-4-mini", "command-r7b")),
        *_each("*/cut:items", of=("apertus", "lfm2", "lfm2.5-thinking", "hunyuan-a13b", "internlm2.5", "olmo-3-think")),
    ),
    "vLLM's parsers complete the arguments of a cut call to valid JSON": (
        *_each("*/cut:arguments", of=("qwen3-coder", "qwen3.5", "nemotron-3", "step-3.5", "trinity", "mimo-v2.5", "seed-oss")),
        *_each("*/cut:arguments", of=("glm-4.6", "glm-4.7", "glm-4.7-flash", "ling-3", "laguna", "minimax-m2", "minimax-m3")),
        *_each("*/cut:arguments", of=("deepseek-v3.2", "deepseek-v4", "deepseek-v4.1", "functiongemma", "plamo-3")),
        *_each("*/cut:arguments", of=("llama-3.1", "llama-3.2", "llama-3.3")),
    ),
    "White space at the end decides whether `>` of </function_calls> is text": (
        "olmo-3-think/letters:*call*",
        "olmo-3-think/letters:*three_kinds",
    ),
}


def family_cases() -> list[object]:
    """Return the parameters `family` and `case` of all outputs, known failures marked."""
    return [_parameters(family, case.name, case) for family, case in _all_cases()]


def chunked_cases(prefix: str = "chunking") -> list[object]:
    """Return the parameters `family` and `case` of all outputs, marked if known to fail in other chunks."""
    return [_parameters(family, f"{prefix}:{case.name}", case) for family, case in _all_cases()]


def prompt_cases() -> list[object]:
    """Return the parameters `family` and `case` of all prompts."""
    return [_parameters(family.name, f"prompt:{case.name}", case) for family in FAMILIES.values() for case in prompts(family)]


def cut_families(name: str) -> list[object]:
    """Return the parameter `family` of all families, marked if known to fail the case `name`."""
    return [_parameters(family, name) for family in FAMILIES]


def unused_patterns() -> list[str]:
    """Return the patterns that match no case."""
    cuts = [*cut_families("cut:items"), *cut_families("cut:arguments")]
    rows = (*family_cases(), *chunked_cases(), *chunked_cases("letters"), *prompt_cases(), *cuts)
    ids = [str(getattr(row, "id", "")) for row in rows]
    patterns = [pattern for each in KNOWN_FAILURES.values() for pattern in each]
    return [pattern for pattern in patterns if not any(_matches(each, pattern) for each in ids)]


def _all_cases() -> Iterator[tuple[str, OutputCase]]:
    return ((family.name, case) for family in FAMILIES.values() for case in cases(family))


def _parameters(family: str, name: str, *more: object) -> object:
    case = f"{family}/{name}"
    marks = [
        pytest.mark.xfail(strict=True, reason=reason)
        for reason, patterns in KNOWN_FAILURES.items()
        if any(_matches(case, pattern) for pattern in patterns)
    ]
    return pytest.param(family, *more, id=case, marks=marks)


def _matches(case: str, pattern: str) -> bool:
    """Match a case; a pattern without a prefix matches only cases without one."""
    return (":" in case) == (":" in pattern) and fnmatchcase(case, pattern)
