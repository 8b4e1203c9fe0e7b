"""Options of the runner, passed as JSON from the launcher."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


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
        """Return the options as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> RunnerOptions:
        """Parse the options."""
        return cls(**json.loads(text))
