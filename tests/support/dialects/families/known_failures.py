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
KNOWN_FAILURES: Mapping[str, tuple[str, ...]] = {}


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
