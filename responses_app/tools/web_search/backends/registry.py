"""Registry of search back ends: from RESPONSES_WEB_SEARCH to a back end."""

from __future__ import annotations

from collections.abc import Mapping

from responses_app.tools.web_search.backends.apis import APIS
from responses_app.tools.web_search.backends.base import SearchBackend
from responses_app.tools.web_search.backends.folder import FolderBackend
from responses_app.tools.web_search.backends.http import HttpSearchBackend
from responses_app.tools.web_search.backends.services import DEFAULT_URLS, FOLDER, folder_of


def open_backend(setting: Mapping[str, object]) -> SearchBackend:
    """Create the back end of a checked setting: `backend`, and `url` and `key` where the back end needs these."""
    name, url, key = str(setting["backend"]), str(setting.get("url") or ""), str(setting.get("key") or "")
    if name == FOLDER:
        return FolderBackend(folder_of(url))
    return HttpSearchBackend(APIS[name], url or DEFAULT_URLS[name] or "", key)
