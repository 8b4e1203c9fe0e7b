"""Startup code of containers: the Python file that RESPONSES_CONTAINER_STARTUP names."""

from __future__ import annotations

import ast
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from responses_app.installation.data_dir import EXAMPLES

NAME = "RESPONSES_CONTAINER_STARTUP"
# Example for the option `--demo-tools`.
DEMO_STARTUP = str(EXAMPLES / "startup.py")
# The code is an argument of the runner.
MAX_BYTES = 32_768


def read_startup_code(path: str) -> str:
    """Return the code of the file `path`; empty without a path. Raises ImproperlyConfigured."""
    if not path:
        return ""
    try:
        code = Path(path).read_text(encoding="utf-8")
        ast.parse(code)
    except (OSError, ValueError, SyntaxError) as error:
        raise ImproperlyConfigured(f"{NAME} must be the path of a file with Python code: {_reason(error)}") from None
    if len(code.encode()) > MAX_BYTES:
        raise ImproperlyConfigured(f"{NAME} must name a file of at most {MAX_BYTES} bytes")
    return code


def _reason(error: Exception) -> str:
    if isinstance(error, SyntaxError):
        return f"{error.msg} (line {error.lineno})"
    return getattr(error, "strerror", None) or "the file is no UTF-8 text"
