"""Parts of results that an item shows only if the request names them in `include`.

The log is the response: a part that was not included when the response was made is in no event, and no later request shows it.
The model reads such a part all the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from responses_app.protocol.deltas import CodeResult, Delta, FileResult, WebResult
from responses_app.protocol.items.server_tools.tool_result import ToolResult

CODE_OUTPUTS: Final = "code_interpreter_call.outputs"
FILE_RESULTS: Final = "file_search_call.results"
WEB_SOURCES: Final = "web_search_call.action.sources"
WEB_RESULTS: Final = "web_search_call.results"

_Cut: TypeAlias = Callable[[Any, Collection[str]], ToolResult]


def drop_excluded(delta: Delta, include: Collection[str]) -> Delta:
    """Return the result `delta` without the parts that `include` does not name. A dropped part becomes `model_text` if that is None."""
    cut = _CUTS.get(type(delta))
    if cut is None or not isinstance(delta, ToolResult):
        return delta
    shown = cut(delta, include)
    if shown == delta or delta.model_text is not None:
        return shown
    return replace(shown, model_text=_text(delta))


def _cut_code(result: CodeResult, include: Collection[str]) -> CodeResult:
    return result if CODE_OUTPUTS in include else replace(result, outputs=None)


def _cut_files(result: FileResult, include: Collection[str]) -> FileResult:
    return result if FILE_RESULTS in include else replace(result, results=None)


def _cut_web(result: WebResult, include: Collection[str]) -> WebResult:
    action = result.action
    if WEB_SOURCES not in include:
        action = {key: value for key, value in action.items() if key != "sources"}
    return replace(result, action=action, results=result.results if WEB_RESULTS in include else None)


_CUTS: Final[Mapping[type[Delta], _Cut]] = {CodeResult: _cut_code, FileResult: _cut_files, WebResult: _cut_web}


def _text(result: ToolResult) -> str | None:
    """Return the parts of `result` that can be excluded, without pictures, as JSON; None if there is none."""
    parts: dict[str, Any] = {}
    if isinstance(result, CodeResult):
        parts["outputs"] = [{"type": "image"} if one.get("type") == "image" else one for one in result.outputs or ()]
    elif isinstance(result, FileResult):
        parts["results"] = result.results
    elif isinstance(result, WebResult):
        parts = {"results": result.results, "sources": result.action.get("sources")}
    parts = {key: value for key, value in parts.items() if value}
    return json.dumps(parts, ensure_ascii=False) if parts else None
