"""Runner of the sandbox: an HTTP service that starts bubblewrap processes. Standard library, starlette and uvicorn only."""

from __future__ import annotations
