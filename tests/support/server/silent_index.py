"""Package index that accepts connections and never answers."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def silent_index() -> Iterator[dict[str, str]]:
    """Yield the environment in which pip and uv wait for the index."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/simple"
        yield {"PIP_INDEX_URL": url, "UV_DEFAULT_INDEX": url, "PIP_CONFIG_FILE": "/dev/null", "NO_PROXY": "127.0.0.1"}
