"""The `format` of a custom tool as a grammar that an engine can follow (§3.15)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from responses_app.dialects.constraints import lark_to_ebnf, regex_to_ebnf
from responses_app.dialects.constraints.regex_to_ebnf import InvalidGrammar

__all__ = ["InvalidGrammar", "convert", "ebnf"]

# Of the result, in characters. An engine compiles a grammar of this size within a second.
MAX_EBNF = 100_000


def ebnf(form: Mapping[str, Any]) -> str | None:
    """EBNF with a rule `root` for the text as it stands in a JSON string, None for a format of any text. Raises BadGrammar."""
    return convert(form["syntax"], form["definition"]) if form.get("type") == "grammar" else None


def convert(syntax: str, definition: str) -> str:
    """The EBNF of a Lark grammar or a regular expression. Takes up to seconds, for a process with a limit. Raises BadGrammar."""
    found = lark_to_ebnf.ebnf(definition) if syntax == "lark" else f"root ::= {regex_to_ebnf.to_ebnf(definition)}"
    if len(found) > MAX_EBNF:
        raise InvalidGrammar(f"it has {len(found)} characters once it is written out as EBNF; at most {MAX_EBNF} are allowed")
    return found
