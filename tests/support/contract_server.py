"""The address of the server of the contract tests."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-contract-tests"


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server listens, and the key it takes."""

    port: int
    key: str = KEY
    folder: Path = Path()

    @property
    def base(self) -> str:
        """The base URL for clients."""
        return f"http://127.0.0.1:{self.port}/v1"

    def key_of(self, project: str) -> str:
        """A new key of another project."""
        environ = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        command = [sys.executable, str(ROOT / "manage.py"), "createkey", project]
        environ["RESPONSES_DATA_DIR"] = str(self.folder)
        return subprocess.run(command, env=environ, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
