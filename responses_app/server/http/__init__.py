"""Daphne with limits: connections, bodies, slow clients, WebSockets, errors in the API's form."""

from __future__ import annotations

# First, as it installs the reactor of asyncio where no other one is installed.
import daphne.server  # noqa: F401
