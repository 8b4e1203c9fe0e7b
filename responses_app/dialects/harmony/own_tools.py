"""gpt-oss's own tools `python` and `browser`, as the harmony library presents these tools in the system message."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from openai_harmony import ToolNamespaceConfig

from responses_app.dialects.toolset import RECIPIENT, Tool, Toolset, recipients

_PYTHON: Final = "python"
# Key of the code in the arguments of the function that stands for `python`.
_CODE_KEY: Final = "code"
# Own tools whose calls are free text.
RAW_RECIPIENTS: Final = frozenset({_PYTHON})
_BROWSER: Final = "browser"
_PYTHON_DESCRIPTION: Final = (
    "Use this tool to execute Python code in your chain of thought, and to make plots, tables and files for the user.\n\n"
    "When you send a message containing Python code to python, it will be executed in a stateful Jupyter notebook environment. python "
    "will respond with the output of the execution or time out after 120.0 seconds. The drive at '/mnt/data' can be used to save and "
    "persist user files. Internet access for this session is disabled. Figures of matplotlib are shown to the user. To offer a file to "
    "the user, link it in the final answer as [name](sandbox:/mnt/data/name)."
)


def functions_of(tools: Toolset) -> list[Tool]:
    """Return the offered tools that are declared as functions in the developer message."""
    return [tool for tool in tools.offered if RECIPIENT not in tool]


def own_tools(offered: Sequence[Tool]) -> tuple[str, ...]:
    """Return the names of gpt-oss's own tools among the offered tools."""
    names = recipients(offered)
    has_browser = any(recipient.partition(".")[0] == _BROWSER for recipient in names)
    return tuple(name for name, is_offered in ((_BROWSER, has_browser), (_PYTHON, _PYTHON in names)) if is_offered)


def namespace_of(name: str) -> ToolNamespaceConfig:
    """Return the namespace of an own tool for the harmony library."""
    if name == _BROWSER:
        return ToolNamespaceConfig.browser()
    return ToolNamespaceConfig(name=_PYTHON, description=_PYTHON_DESCRIPTION, tools=[])


def call_text(recipient: str, arguments: str) -> str:
    """Return the text of a call of an own tool, from the JSON arguments of the function: code, or the arguments of the own tool."""
    values = json.loads(arguments)
    if recipient in RAW_RECIPIENTS:
        return str(values[_CODE_KEY])
    if "url" in values:
        # A page is opened by its address under `id`; a search in a page is about the newest page.
        address = {} if "pattern" in values else {"id": values["url"]}
        values = {**address, **{key: value for key, value in values.items() if key != "url"}}
    return json.dumps(values, ensure_ascii=False)
