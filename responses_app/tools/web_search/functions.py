"""Functions of the web search, as the model is offered them, and earlier calls, as the model reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from responses_app.tools.base import Json
from responses_app.tools.declaration import INTEGER, STRING, PastCall, define_function, dump, fields_or_status

# Types of the tool in requests.
TYPES: Final = frozenset({"web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11"})
WEB_SEARCH, OPEN_PAGE, FIND_IN_PAGE = "web_search", "open_page", "find_in_page"
FUNCTIONS: Final[Mapping[str, Json]] = {
    WEB_SEARCH: define_function(
        WEB_SEARCH,
        "Searches the web. Returns results with numbers, titles, addresses and excerpts. Cite each source that the answer uses as a "
        "Markdown link behind the statement: ([title](https://address)).",
        {"query": STRING},
        ["query"],
        recipient="browser.search",
    ),
    OPEN_PAGE: define_function(
        OPEN_PAGE,
        "Opens a page. Name its address (`url`), or the number of a link or search result (`id`). Returns its text as numbered lines, "
        "from the line `line` on.",
        {"url": STRING, "id": INTEGER, "line": INTEGER},
        recipient="browser.open",
    ),
    FIND_IN_PAGE: define_function(
        FIND_IN_PAGE,
        "Finds a text in a page. Without the number `id` of a page, that is the page that was opened last. Returns each place with its "
        "lines.",
        {"pattern": STRING, "id": INTEGER},
        ["pattern"],
        recipient="browser.find",
    ),
}
# Types of actions other than a search -> function.
_FUNCTION_OF_ACTION: Final = {"open_page": OPEN_PAGE, "find_in_page": FIND_IN_PAGE, "find": FIND_IN_PAGE}


def _function(item: Json) -> str:
    return _FUNCTION_OF_ACTION.get(str((item.get("action") or {}).get("type")), WEB_SEARCH)


def _arguments(item: Json) -> str:
    """Return the arguments. Sources are results, not arguments; several queries were a single call."""
    action = item.get("action") or {}
    shown = {key: action[key] for key in ("query", "url", "pattern") if action.get(key) is not None}
    return dump(shown or {"query": (action.get("queries") or [""])[0]})


def _output(item: Json) -> str:
    sources = (item.get("action") or {}).get("sources")
    return fields_or_status({**item, "sources": sources}, "results", "sources")


PAST_CALLS: Final = {"web_search_call": PastCall(_function, _arguments, _output)}
