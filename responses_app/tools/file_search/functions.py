"""Function of the file search, as the model is offered it, and earlier calls, as the model reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from responses_app.tools.base import Json
from responses_app.tools.declaration import STRING, PastCall, define_function, dump, fields_or_status

# Types of the tool in requests.
TYPES: Final = frozenset({"file_search"})
FILE_SEARCH: Final = "file_search"
FUNCTIONS: Final[Mapping[str, Json]] = {
    FILE_SEARCH: define_function(
        FILE_SEARCH,
        "Searches the files of the user. Returns passages of the files. Each passage begins with a marker such as "
        "【3†report.pdf】: cite a passage by writing its marker behind the statement.",
        {"query": STRING},
        ["query"],
    )
}


def _arguments(item: Json) -> str:
    """Return the offered argument for a single query, else all queries."""
    queries = item["queries"]
    return dump({"query": queries[0]} if len(queries) == 1 else {"queries": queries})


PAST_CALLS: Final = {
    "file_search_call": PastCall(lambda _: FILE_SEARCH, _arguments, lambda item: fields_or_status(item, "results"))
}
