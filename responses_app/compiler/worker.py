"""Compile job: runs in a worker process, from JSON to JSON."""

from __future__ import annotations

import json
import os
import re
from functools import cache

from responses_app.compiler.jobs import CONVERSIONS
from responses_app.compiler.xgrammars import GrammarCompiler
from responses_app.dialects.constraints import grammar, lark_to_ebnf
from responses_app.dialects.constraints.bounds import bounded_tag

# xgrammar's messages begin with the time and the line of the source.
_SOURCE = re.compile(r"^.*\.cc:\d+: ", re.DOTALL)

INTERNAL_ERROR = (
    "the grammar compiler fails on it; a known reason is a repeat in a pattern with different bounds of which one is above 128, "
    "as in 'a{0,300}'"
)

# Prepare during process start, so that no job waits for it.
lark_to_ebnf.prepare()


def compile_json(payload: bytes) -> bytes:
    """Run a job with `kind` and `text`; return a `text` or a `refusal`."""
    job = json.loads(payload)
    try:
        return json.dumps({"text": _compile(job["kind"], job["text"])}).encode()
    except grammar.InvalidGrammar as error:
        refusal = str(error)
    except MemoryError:
        # The process may be unusable from now on; the pool replaces it.
        os.abort()
    except Exception as error:  # Native compilers raise exceptions of any class; in every case the input is rejected.
        refusal = _reason(error)
    return json.dumps({"refusal": refusal}).encode()


def _reason(error: Exception) -> str:
    """Return the compiler's message in a single line, or INTERNAL_ERROR: internal checks do not describe the input."""
    message = str(error)
    return INTERNAL_ERROR if "Check failed" in message else " ".join(_SOURCE.sub("", message).split()) or type(error).__name__


def _compile(kind: str, text: str) -> str:
    if kind in CONVERSIONS:
        return grammar.convert(kind.removesuffix("_to_ebnf"), text)
    return _bounded(text) or _compiled(kind, text) if kind == "structural_tag" else _compiled(kind, text)


def _compiled(kind: str, text: str) -> str:
    _compiler().compile(kind, text)
    return ""


def _bounded(text: str) -> str:
    """Return a structural tag with bounds, compiled; an empty text if xgrammar refuses the schema or the grammar with bounds."""
    try:
        bounded = json.dumps(bounded_tag(json.loads(text), _compiler().json_ebnf))
        _compiler().compile("structural_tag", bounded)
    except MemoryError:
        raise
    except Exception:  # The compilation without bounds finds the reason.
        return ""
    return bounded


@cache
def _compiler() -> GrammarCompiler:
    return GrammarCompiler()
