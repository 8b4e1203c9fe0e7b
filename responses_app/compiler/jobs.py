"""Compilation jobs: their input, their result, and the limits that a worker process enforces."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal, TypeAlias

# A Lark grammar or a regular expression to convert to EBNF; or a constraint to compile as the engine will.
Kind: TypeAlias = Literal["lark_to_ebnf", "regex_to_ebnf", "json", "regex", "grammar", "structural_tag"]
CONVERSIONS: tuple[Kind, ...] = ("lark_to_ebnf", "regex_to_ebnf")

# Of computing time.
CONVERSION_CPU_S = 2
COMPILATION_CPU_S = 4
# The clock may run longer than the computing time, as the machine has other work.
WALL_FACTOR = 8
MEMORY_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Job:
    """One text to convert or to compile."""

    kind: Kind
    text: str

    @property
    def key(self) -> bytes:
        """The cache key: a hash of the kind and the text."""
        return hashlib.sha256(f"{self.kind} {self.text}".encode("utf-8", "surrogatepass")).digest()

    @property
    def cpu_s(self) -> int:
        """How many seconds of computing it may take."""
        return CONVERSION_CPU_S if self.kind in CONVERSIONS else COMPILATION_CPU_S


@dataclass(frozen=True, slots=True)
class Result:
    """The EBNF of a conversion, an empty text for a compilation; or the reason why the input is refused.

    `is_final` is false where the machine is the reason, and not the input; such a result is not cached.
    """

    text: str = ""
    refusal: str | None = None
    is_final: bool = True

    @property
    def size(self) -> int:
        """About how many bytes it takes in memory."""
        return 200 + len(self.text) + len(self.refusal or "")
