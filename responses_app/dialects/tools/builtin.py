"""Functions of the built-in tools: code interpreter, web search and file search, presented to models.

Chat models get the functions as declared here. gpt-oss was trained with tools of its own instead: `recipient` is the name of such a
tool in the harmony format, where calls of the tool `python` are code without JSON.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, TypeAlias

Json: TypeAlias = Mapping[str, Any]

PYTHON, WEB_SEARCH, OPEN_PAGE, FIND_IN_PAGE, FILE_SEARCH = "python", "web_search", "open_page", "find_in_page", "file_search"
CODE_KEY: Final = "code"
# Function -> tool of gpt-oss.
RECIPIENTS: Final[Mapping[str, str]] = {
    PYTHON: "python",
    WEB_SEARCH: "browser.search",
    OPEN_PAGE: "browser.open",
    FIND_IN_PAGE: "browser.find",
}
# Key of a function for the tool of gpt-oss. Declarations of clients never have this key.
RECIPIENT: Final = "recipient"
# Tools of gpt-oss whose calls are free text.
RAW_RECIPIENTS: Final = frozenset({RECIPIENTS[PYTHON]})

_STRING: Final = {"type": "string"}
_INTEGER: Final = {"type": "integer"}


def _function(name: str, description: str, required: Sequence[str], **properties: Json) -> Json:
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    own = {RECIPIENT: RECIPIENTS[name]} if name in RECIPIENTS else {}
    return {"type": "function", "name": name, "description": description, "parameters": schema, "strict": False, **own}


FUNCTIONS: Final[Mapping[str, Json]] = {
    PYTHON: _function(
        PYTHON,
        "Runs Python code. Returns what the code prints, and the value of its last expression. Variables and files stay for later "
        "calls. numpy, pandas, matplotlib and pillow are installed; there is no internet access. A call may take 120 seconds. "
        "Figures of matplotlib are shown to the user. The user can download files in /mnt/data: to offer a file, link it as "
        "[name](sandbox:/mnt/data/name).",
        ["code"],
        code=_STRING,
    ),
    WEB_SEARCH: _function(
        WEB_SEARCH,
        "Searches the web. Returns results with numbers, titles, addresses and excerpts. Cite each source that the answer uses as a "
        "Markdown link behind the statement: ([title](https://address)).",
        ["query"],
        query=_STRING,
    ),
    OPEN_PAGE: _function(
        OPEN_PAGE,
        "Opens a page. Name its address (`url`), or the number of a link or search result (`id`). Returns its text as numbered lines, "
        "from the line `line` on.",
        [],
        url=_STRING,
        id=_INTEGER,
        line=_INTEGER,
    ),
    FIND_IN_PAGE: _function(
        FIND_IN_PAGE,
        "Finds a text in a page. Without the number `id` of a page, that is the page that was opened last. Returns each place with its "
        "lines.",
        ["pattern"],
        pattern=_STRING,
        id=_INTEGER,
    ),
    FILE_SEARCH: _function(
        FILE_SEARCH,
        "Searches the files of the user. Returns passages of the files. Each passage begins with a marker such as "
        "【3†report.pdf】: cite a passage by writing its marker behind the statement.",
        ["query"],
        query=_STRING,
    ),
}


def recipients(tools: Sequence[Json]) -> dict[str, str]:
    """Return the tools of gpt-oss among the functions `tools`: recipient -> name of the function."""
    return {str(tool[RECIPIENT]): str(tool["name"]) for tool in tools if RECIPIENT in tool}


def taken_name(names: Collection[str], functions: Sequence[Json]) -> str | None:
    """Return the first name of the client's tools `names` that a function of the server has, too; None without such a name."""
    return next((str(one["name"]) for one in functions if one["name"] in names), None)
