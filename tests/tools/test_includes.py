"""Parts of results that items show only with an include."""

from __future__ import annotations

import pytest

from responses_app.protocol.deltas import CodeResult, CodeStarted, Delta, FileResult, McpResult, WebResult
from responses_app.protocol.items.server_tools.tool_result import ToolResult
from responses_app.tools.includes import drop_excluded

LOGS = [{"type": "logs", "logs": "4"}]
FOUND = [{"file_id": "file_1", "filename": "a.txt", "score": 1.0, "attributes": {}, "text": "Tea."}]
SOURCES = [{"type": "url", "url": "https://example.com"}]
SEARCH = {"type": "search", "query": "tea"}
ALL = (
    "code_interpreter_call.outputs",
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
)
WHOLE = {
    "code": CodeResult(LOGS, model_text="4"),
    "files": FileResult(["tea"], FOUND, model_text="Tea."),
    "web": WebResult({**SEARCH, "sources": SOURCES}, results=FOUND, model_text="Tea."),
}
EXCLUDED = {
    "code": CodeResult(None, model_text="4"),
    "files": FileResult(["tea"], None, model_text="Tea."),
    "web": WebResult(SEARCH, model_text="Tea."),
}


@pytest.mark.parametrize("name", WHOLE)
def test_includes_show_everything(name: str) -> None:
    assert drop_excluded(WHOLE[name], ALL) == WHOLE[name]


@pytest.mark.parametrize("name", WHOLE)
def test_excluded_parts_are_dropped(name: str) -> None:
    assert drop_excluded(WHOLE[name], ()) == EXCLUDED[name]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        pytest.param(
            CodeResult([{"type": "image", "url": "data:"}]),
            '{"outputs": [{"type": "image"}]}',
            id="code",
        ),
        pytest.param(
            WebResult({**SEARCH, "sources": SOURCES}), '{"sources": [{"type": "url", "url": "https://example.com"}]}', id="web"
        ),
        pytest.param(CodeResult(), None, id="no outputs"),
        pytest.param(CodeResult([], failed=True), None, id="empty outputs"),
    ],
)
def test_dropped_parts_become_the_text_for_the_model(result: Delta, text: str | None) -> None:
    shown = drop_excluded(result, ())
    assert isinstance(shown, ToolResult)
    assert shown.model_text == text


@pytest.mark.parametrize("delta", [CodeStarted(), McpResult("4"), CodeResult(failed=True), WebResult(SEARCH)], ids=repr)
def test_other_deltas_stay(delta: Delta) -> None:
    assert drop_excluded(delta, ()) == delta
