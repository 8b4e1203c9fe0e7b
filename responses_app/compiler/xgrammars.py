"""xgrammar without torch and transformers, 40 MB instead of 280 MB: loads the native library directly."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from string import ascii_lowercase
from types import ModuleType
from typing import Any

from responses_app.dialects.constraints.bounds import COMPACT_WHITE_SPACE, SPACED_WHITE_SPACE, allow_blanks

# As vLLM's backend_xgrammar compiles: any white space, default separators, strict mode, keys in schema order.
_JSON_OPTIONS = (True, None, None, True, None, False, False)
_RAW = 0
_SEPARATORS = {COMPACT_WHITE_SPACE: (",", ":"), SPACED_WHITE_SPACE: (", ", ": ")}


def load() -> Any:
    """Load the native library of xgrammar, without torch and xgrammar's Python classes.

    Raises ImportError if xgrammar is not installed.
    """
    spec = find_spec("xgrammar")
    if spec is None or spec.submodule_search_locations is None:
        raise ImportError("xgrammar is not installed")
    # The binding library imports torch if available; this entry makes the import fail.
    sys.modules.setdefault("torch", None)  # type: ignore[arg-type]
    package = ModuleType("xgrammar")
    package.__path__ = list(spec.submodule_search_locations)
    sys.modules["xgrammar"] = package
    import_module("xgrammar.load_binding")
    return import_module("xgrammar.base")._core


class GrammarCompiler:
    """xgrammar with a small vocabulary: all bytes, and all pairs of a blank or letter with a letter.

    Compile time grows with the size of a grammar as for a model's vocabulary, but is shorter.
    """

    def __init__(self) -> None:
        self._core = load()
        tokens = [bytes([byte]) for byte in range(256)]
        tokens += [(first + second).encode() for first in " " + ascii_lowercase for second in ascii_lowercase]
        vocabulary = self._core.TokenizerInfo([*tokens, b"</s>"], _RAW, None, [len(tokens)], False)
        # One thread, so that a job of another project has the other core. With the cache, as in vLLM: xgrammar compiles
        # differently without it.
        self._compiler = self._core.GrammarCompiler(vocabulary, 1, True, -1)

    def compile(self, kind: str, text: str) -> None:
        """Parse a constraint, then compile as an engine would. Raises the exceptions of xgrammar."""
        self._compiler.compile_grammar_ebnf(self._parse(kind, text))
        self._compiler.clear_cache()

    def json_ebnf(self, json_format: Mapping[str, Any]) -> str:
        """Convert a JSON schema format of a structural tag to EBNF, with white space by the limit of the format."""
        limit, any_order = json_format.get("max_whitespace_cnt"), json_format.get("any_order", False)
        separators = None if limit is None else _SEPARATORS.get(limit)
        # Values: any white space, indent, separators, strict mode, limit of white space, print, any order.
        options = (separators is None, None, separators, True, None if separators else limit, False, any_order)
        text = str(self._core.Grammar.from_json_schema(json.dumps(json_format["json_schema"]), *options).to_string())
        return allow_blanks(text) if limit == SPACED_WHITE_SPACE else text

    def _parse(self, kind: str, text: str) -> Any:
        if kind == "json":
            return self._core.Grammar.from_json_schema(text, *_JSON_OPTIONS)
        if kind == "structural_tag":
            return self._core.Grammar.from_structural_tag(text)
        if kind == "regex":
            return self._core.Grammar.from_regex(text, False)
        return self._core.Grammar.from_ebnf(text, "root")
