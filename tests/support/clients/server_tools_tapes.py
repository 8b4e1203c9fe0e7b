"""Recordings of a model that uses the tools of the server: turns in harmony, in the order of the requests of each client."""

from __future__ import annotations

import json
from typing import Any

from tests.support.clients.tapes import PERSON, Line, calls, text
from tests.support.web_search.pages_folder import MOON

# The drivers write the same file name into their vector stores.
FILE = "example.txt"
WATER = f"Arrakis was inspired by the scarcity of water【0†{FILE}】."
TIDES = "The moon causes tides【0†L1-L3】."
LINKED_TIDES = f"The moon causes tides ([Tides]({MOON}))."
REPORT = "Here is [the report](sandbox:/mnt/data/report.csv)."
CODE = "print(6 * 7)"
WRITE_REPORT = "open('/mnt/data/report.csv', 'w').write('a,b\\n1,2\\n')"
PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()\nprint('plotted')"


def code(source: str) -> Line:
    """A call of gpt-oss's tool `python`."""
    return f"<|channel|>analysis to=python code<|message|>{source}<|call|>", ""


def browse(function: str, **arguments: Any) -> Line:
    """A call of gpt-oss's tool `browser`."""
    return f"<|channel|>analysis to=browser.{function} code<|message|>{json.dumps(arguments)}<|call|>", ""


# Calls that fail.
FAILING = [code("1 / 0"), browse("open", id=77), browse("find", pattern="x"), calls("file_search", {"queries": 3}), text("Oh.")]
SEARCH_FILES = calls("file_search", {"queries": ["Arrakis water"]})
SEARCH_WEB = browse("search", query="moon tides")
BROWSING = [SEARCH_WEB, browse("open", id=0), browse("find", pattern="line 7 "), text(TIDES)]
# One answer with each tool, then an answer to a turn that gets the calls of all tools back.
EACH_TOOL = [
    *[code(WRITE_REPORT), text(REPORT)],
    *[SEARCH_FILES, text(WATER)],
    *BROWSING,
]
TAPES: dict[str, list[Line]] = {
    "agents-python": [
        *[code(CODE), text("It is 42.")],
        *EACH_TOOL,
        *[SEARCH_WEB, text(LINKED_TIDES)],
        *[code(CODE), SEARCH_FILES, SEARCH_WEB, text("All."), text("Again.")],
        *[*FAILING, text("Again.")],
    ],
    "agents-node": [
        *EACH_TOOL,
        *[code(CODE), SEARCH_FILES, SEARCH_WEB, text("All."), text("Again.")],
    ],
    "openai-python": [
        *EACH_TOOL,
        *EACH_TOOL,
        *[code(PLOT), text("A line.")],
        *[code(CODE), text("It is 42.")],
        *[code(CODE), code(CODE), text(json.dumps(PERSON))],
        *[code(CODE), SEARCH_FILES, SEARCH_WEB, text("All."), text("Again."), text("Once more.")],
        *[code("while True: pass"), code(CODE), text("Free.")],
    ],
    "langchain": [
        *EACH_TOOL,
        *EACH_TOOL,
        *[code(CODE), SEARCH_FILES, SEARCH_WEB, text("All."), text("Again.")] * 3,
    ],
    "ai": [
        *[code(PLOT), text("A line.")],
        *EACH_TOOL,
        *[code(PLOT), text("A line.")],
        *EACH_TOOL,
        *[code(CODE), SEARCH_FILES, SEARCH_WEB, text("All."), text("Again.")] * 4,
        *[*FAILING, text("Again.")] * 2,
    ],
    "pydantic-ai": [
        *EACH_TOOL,
        *EACH_TOOL,
        *[code(CODE), SEARCH_FILES, SEARCH_WEB, text("All."), text("Again.")] * 2,
    ],
}
