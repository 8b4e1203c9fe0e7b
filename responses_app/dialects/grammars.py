"""The `format` of a custom tool as a grammar that an engine can follow (§3.15)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from responses_app.dialects import larks, regexes
from responses_app.dialects.regexes import BadGrammar

__all__ = ["BadGrammar", "ebnf"]


def ebnf(form: Mapping[str, Any]) -> str | None:
    """EBNF with a rule `root` for the text as it stands in a JSON string, None for a format of any text. Raises BadGrammar."""
    return _ebnf(form["syntax"], form["definition"]) if form.get("type") == "grammar" else None


@lru_cache(256)
def _ebnf(syntax: str, definition: str) -> str:
    return larks.ebnf(definition) if syntax == "lark" else f"root ::= {regexes.ebnf(definition)}"
