"""How a client program is run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

LIMIT_S = 90
Drive = Callable[[str, str], dict[str, Any]]
