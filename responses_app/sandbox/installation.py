"""State of the installation of packages for containers, which the installing process writes and the runner reads."""

from __future__ import annotations

import json
import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

STATE_FILE = "state.json"
# Limits of pip and of the cache of fonts, 900 seconds each. A longer installation was killed.
LONGEST_S = 2 * 900.0
# Names under which code imports the packages.
IMPORT_NAMES = re.compile(r"\b(?:numpy|pandas|matplotlib|mpl_toolkits|pylab|PIL)\b")


@dataclass(frozen=True, slots=True)
class InstallationState:
    """State since `since`, in seconds since 1970. `failure` says why the last try failed, `retry_at` is the time of the next, or 0."""

    step: Literal["installing", "failed"]
    since: float
    failure: str = ""
    retry_at: float = 0.0

    @classmethod
    def read(cls, folder: Path) -> InstallationState | None:
        """Return the state in `folder`; None without a readable state."""
        try:
            return cls(**json.loads((folder / STATE_FILE).read_text()))
        except (OSError, ValueError, TypeError):
            return None

    @property
    def is_running(self) -> bool:
        """Return whether an installation runs, as far as the state says."""
        return self.step == "installing" and time.time() - self.since < LONGEST_S

    def to_json(self) -> str:
        """Return the state as JSON."""
        return json.dumps(asdict(self))

    def sentence(self) -> str:
        """Return the state in words, without the output of pip."""
        now = time.time()
        if self.is_running:
            return f"being installed for {max(now - self.since, 0):.0f} seconds"
        failure = self.failure.removesuffix(".") or "the installation has not ended; the next start of the server tries again"
        retry = f"; the next try is in {max(self.retry_at - now, 0):.0f} seconds" if self.retry_at else ""
        return f"not installed: {failure}{retry}"
