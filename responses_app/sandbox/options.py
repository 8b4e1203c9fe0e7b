"""Options of the runner, passed as JSON from the launcher, and the token, passed in the environment."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

TOKEN_VARIABLE: Final = "RESPONSES_SANDBOX_TOKEN"  # noqa: S105 - a name


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """Limits of the runner. Sizes are in MiB or bytes as named, times in seconds."""

    run_timeout_s: float = 120
    output_bytes: int = 1_000_000
    # Upper bound of the memory tiers.
    memory_mib: int = 4096
    # Files of a container: work folder, /tmp and /dev/shm together.
    disk_mib: int = 512
    max_files: int = 20_000
    max_containers: int = 16
    idle_s: float = 1200
    # Longest wait of a run for a place of its project.
    busy_wait_s: float = 60
    # Processes and threads of a container.
    max_processes: int = 128
    # Single runs at the same time.
    max_single_runs: int = 4
    # Python code that each interpreter runs at its start.
    startup_code: str = ""
    # Shared token of clients over TCP; empty for a Unix socket.
    token: str = ""
    # Delegated cgroup; empty without one.
    cgroup: str = ""

    def to_json(self) -> str:
        """Return the options as JSON, without the token: every account of the machine can read command lines."""
        values = asdict(self)
        del values["token"]
        return json.dumps(values)

    def environment(self) -> Mapping[str, str]:
        """Return the environment variable of the token."""
        return {TOKEN_VARIABLE: self.token}

    @classmethod
    def from_json(cls, text: str) -> RunnerOptions:
        """Parse the options, and move the token from the environment, so that no child process inherits the token."""
        return cls(**json.loads(text), token=os.environ.pop(TOKEN_VARIABLE, ""))
