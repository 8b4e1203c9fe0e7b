"""Compilation jobs and results."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal, TypeAlias

# A Lark grammar or a regular expression to convert to EBNF, or a constraint to compile as the engine does.
Kind: TypeAlias = Literal["lark_to_ebnf", "regex_to_ebnf", "json", "regex", "grammar", "structural_tag"]
CONVERSIONS: tuple[Kind, ...] = ("lark_to_ebnf", "regex_to_ebnf")


@dataclass(frozen=True, slots=True)
class CompileJob:
    """A text to convert or to compile."""

    kind: Kind
    text: str

    @property
    def key(self) -> bytes:
        """The cache key: a hash of the kind and the text."""
        return hashlib.sha256(f"{self.kind} {self.text}".encode("utf-8", "surrogatepass")).digest()


@dataclass(frozen=True, slots=True)
class Result:
    """The EBNF of a conversion, the bounded structural tag of a compilation (else empty), or the reason for a rejection."""

    text: str = ""
    refusal: str | None = None

    @property
    def size(self) -> int:
        """Approximate size in memory, in bytes."""
        return 200 + len(self.text) + len(self.refusal or "")
