"""Pages of a server, opened by the owner."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import httpx2

from bench.support.servers import ROOT, python


def sign_in(pages: httpx2.Client, data: Path) -> None:
    """Sign in by a link of `manage.py signin`."""
    environ = {**{name: value for name, value in os.environ.items() if name != "DATABASE_URL"}, "RESPONSES_DATA_DIR": str(data)}
    command = [python(), str(ROOT / "manage.py"), "signin", "--url", str(pages.base_url)]
    printed = subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout
    link = re.search(r"http\S+", printed)
    if link is None:
        raise RuntimeError(f"manage.py signin printed no link: {printed}")
    pages.get(link[0]).raise_for_status()


def page_ms(pages: httpx2.Client, path: str) -> float:
    """Return the milliseconds until the whole page is there. Raises HTTPStatusError."""
    began = time.perf_counter()
    pages.get(path).raise_for_status()
    return 1e3 * (time.perf_counter() - began)
