"""Conversion of the `format` of a custom tool to a grammar for the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from responses_app.dialects.constraints import lark_to_ebnf, regex_to_ebnf
from responses_app.dialects.constraints.regex_to_ebnf import InvalidGrammar

__all__ = ["InvalidGrammar", "convert", "ebnf"]

# Maximum length of the EBNF in characters. An engine compiles a grammar of this size within a second.
MAX_EBNF = 100_000


def ebnf(form: Mapping[str, Any]) -> str | None:
    """Return EBNF with a rule `root` for the text as a JSON string, None for a free format. Raises InvalidGrammar."""
    return convert(form["syntax"], form["definition"]) if form.get("type") == "grammar" else None


def convert(syntax: str, definition: str) -> str:
    """Convert a Lark grammar or a regular expression to EBNF; takes up to seconds. Raises InvalidGrammar.

    Call it in a process with a time limit.
    """
    result = lark_to_ebnf.ebnf(definition) if syntax == "lark" else f"root ::= {regex_to_ebnf.to_ebnf(definition)}"
    if len(result) > MAX_EBNF:
        raise InvalidGrammar(f"it has {len(result)} characters once it is written out as EBNF; at most {MAX_EBNF} are allowed")
    return result
