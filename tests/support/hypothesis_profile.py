"""The profile of hypothesis: no limits of time, as machines are slow at times, and failures kept in `.hypothesis/examples`.

A run tries 30 % of the examples, and all of them with `TEST_EXAMPLES=all` in the environment.
"""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

ROOT = Path(__file__).parents[2]
FAILURES = ROOT / ".hypothesis" / "examples"
DEFAULT = 100
SHARE = 0.3


def examples(count: int, share: float = SHARE) -> int:
    """Return the number of examples of a test: `count` with `TEST_EXAMPLES=all`, else this share of `count`."""
    return count if os.environ.get("TEST_EXAMPLES") == "all" else max(round(count * share), 1)


def load() -> None:
    """Load the profile; the failures are tried first in the next run."""
    database = DirectoryBasedExampleDatabase(FAILURES)
    settings.register_profile(
        "verbatim",
        deadline=None,
        suppress_health_check=(HealthCheck.too_slow,),
        print_blob=True,
        database=database,
        max_examples=examples(DEFAULT),
    )
    settings.load_profile("verbatim")
