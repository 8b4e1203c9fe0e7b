"""Search services: names, addresses and needs of the back ends, without the code that calls them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

FOLDER = "folder"
# Addresses of the services by name; None for a service that every operator installs.
DEFAULT_URLS: Mapping[str, str | None] = {
    "searxng": None,
    "brave": "https://api.search.brave.com/res/v1",
    "tavily": "https://api.tavily.com",
    "exa": "https://api.exa.ai",
}
NAMES = (*DEFAULT_URLS, FOLDER)
KEYS_NEEDED = frozenset({"brave", "tavily", "exa"})


def folder_of(url: str) -> Path:
    """Return the folder of a URL of the form `folder:///path`."""
    return Path(unquote(urlsplit(url).path))
