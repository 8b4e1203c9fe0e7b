"""The profile of hypothesis: no deadlines, as machines are slow at times, and failures kept in `.hypothesis/examples`."""

from __future__ import annotations

from pathlib import Path

from hypothesis import settings
from hypothesis.database import DirectoryBasedExampleDatabase

ROOT = Path(__file__).parents[2]
FAILURES = ROOT / ".hypothesis" / "examples"


def load() -> None:
    """Load the profile; the failures are tried first in the next run."""
    settings.register_profile("verbatim", deadline=None, print_blob=True, database=DirectoryBasedExampleDatabase(FAILURES))
    settings.load_profile("verbatim")
