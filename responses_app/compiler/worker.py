"""The function that compiler processes run (`workers.child`): one job, as JSON, to its result, as JSON."""

from __future__ import annotations

import json
import os
import re
from functools import cache

from responses_app.compiler.jobs import CONVERSIONS
from responses_app.compiler.xgrammars import Compiler
from responses_app.dialects.constraints import grammar, lark_to_ebnf

# What xgrammar puts before its messages: the time, and the line of its source.
_SOURCE = re.compile(r"^.*\.cc:\d+: ", re.DOTALL)

INTERNAL_ERROR = (
    "the grammar compiler fails on it; a known reason is a repeat in a pattern with different bounds of which one is above 128, "
    "as in 'a{0,300}'"
)

# While the process starts, so that no job waits for it.
lark_to_ebnf.prepare()


def compile_json(payload: bytes) -> bytes:
    """The result of a job with `kind` and `text`: a `text` or a `refusal`."""
    job = json.loads(payload)
    try:
        return json.dumps({"text": _compile(job["kind"], job["text"])}).encode()
    except grammar.InvalidGrammar as error:
        refusal = str(error)
    except MemoryError:
        # The process may be of little use from now on; another one takes its place.
        os.abort()
    except Exception as error:  # Compilers in native code raise what they like; whatever it is, the input was refused.
        refusal = _reason(error)
    return json.dumps({"refusal": refusal}).encode()


def _reason(error: Exception) -> str:
    """What the compiler says, in one line. Its internal checks say nothing about the input."""
    message = str(error)
    return INTERNAL_ERROR if "Check failed" in message else " ".join(_SOURCE.sub("", message).split()) or type(error).__name__


def _compile(kind: str, text: str) -> str:
    if kind in CONVERSIONS:
        return grammar.convert(kind.removesuffix("_to_ebnf"), text)
    _compiler().compile(kind, text)
    return ""


@cache
def _compiler() -> Compiler:
    return Compiler()
