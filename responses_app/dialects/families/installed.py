"""Parsers of the installed vLLM, by name. Reads source files instead of importing vLLM, which takes seconds."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from responses_app.dialects.formats.table import CALLS, REASONING

# Parsers of declared formats, which need no vLLM.
OWN_REASONING_PARSERS = frozenset(REASONING)
OWN_TOOL_PARSERS = frozenset(CALLS)
# Parsers of gpt-oss in vLLM, in place of which the harmony dialect is used.
HARMONY_REASONING_PARSER, HARMONY_TOOL_PARSER = "openai_gptoss", "openai"


@dataclass(frozen=True, slots=True)
class InstalledParsers:
    """Names of the parsers that can be used."""

    reasoning: frozenset[str]
    tools: frozenset[str]


@cache
def installed_parsers() -> InstalledParsers:
    """Return the parsers of the installed vLLM, or those of our own scanner if vLLM is not installed."""
    return InstalledParsers(
        OWN_REASONING_PARSERS | {HARMONY_REASONING_PARSER} | _registered("reasoning", "_REASONING_PARSERS_TO_REGISTER"),
        OWN_TOOL_PARSERS | {HARMONY_TOOL_PARSER} | _registered("tool_parsers", "_TOOL_PARSERS_TO_REGISTER"),
    )


def _registered(package: str, variable: str) -> frozenset[str]:
    """Return the keys of the dictionary `variable` in a package of vLLM."""
    spec = find_spec("vllm")
    folder = Path(spec.origin).parent if spec and spec.origin else Path()
    file = folder / package / "__init__.py"
    if spec is None or not file.is_file():
        return frozenset()
    for statement in ast.parse(file.read_text()).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Dict) and _name(statement) == variable:
            return frozenset(str(key.value) for key in statement.value.keys if isinstance(key, ast.Constant))
    return frozenset()


def _name(assignment: ast.Assign) -> str:
    target = assignment.targets[0]
    return target.id if isinstance(target, ast.Name) else ""
