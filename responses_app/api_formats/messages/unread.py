"""Fields of requests and of earlier answers that change nothing here: unknown keys in them are refused all the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator

from responses_app.errors import InvalidRequest
from responses_app.validation.base import Array, StrictModel, validate
from responses_app.validation.errors import Loc, invalid_value, json_path


def _all_as_object(raw: object) -> object:
    return {"type": "all"} if raw == "all" else raw


def _switch_as_names(raw: object) -> object:
    return [] if isinstance(raw, bool) else raw


class EditAmount(StrictModel):
    """Number of tokens, calls or turns."""

    type: Literal["input_tokens", "tool_uses", "thinking_turns", "all"]
    value: int | None = None


class ToolUsesEdit(StrictModel):
    """Removal of earlier calls."""

    type: Literal["clear_tool_uses_20250919"]
    clear_at_least: EditAmount | None = None
    clear_tool_inputs: Annotated[Array[str] | None, BeforeValidator(_switch_as_names)] = None
    exclude_tools: Array[str] | None = None
    keep: EditAmount | None = None
    trigger: EditAmount | None = None


class ThinkingEdit(StrictModel):
    """Removal of earlier reasoning."""

    type: Literal["clear_thinking_20251015"]
    keep: Annotated[EditAmount | None, BeforeValidator(_all_as_object)] = None


class CompactEdit(StrictModel):
    """Compaction."""

    type: Literal["compact_20260112"]
    instructions: str | None = None
    pause_after_compaction: bool | None = None
    trigger: EditAmount | None = None


class ContextEdits(StrictModel):
    """`context_management`; `check_edits` checks the edits."""

    edits: Array[dict[str, Any]] | None = None


EDITS: Final[Mapping[str, type[StrictModel]]] = {
    "clear_tool_uses_20250919": ToolUsesEdit,
    "clear_thinking_20251015": ThinkingEdit,
    "compact_20260112": CompactEdit,
}


class CitationsConfig(StrictModel):
    """`citations` of a document or a search result. Models of this server cite neither."""

    enabled: bool | None = None


class EarlierCitation(StrictModel):
    """Citation of an earlier text, of any type, with the keys of answers."""

    type: str
    cited_text: str | None = None
    document_index: int | None = None
    document_title: str | None = None
    encrypted_index: str | None = None
    end_block_index: int | None = None
    end_char_index: int | None = None
    end_page_number: int | None = None
    file_id: str | None = None
    search_result_index: int | None = None
    source: str | None = None
    start_block_index: int | None = None
    start_char_index: int | None = None
    start_page_number: int | None = None
    title: str | None = None
    url: str | None = None


class ToolCaller(StrictModel):
    """`caller` of an earlier call: the model, or code that another server ran."""

    type: str
    tool_id: str | None = None


class FoundPage(StrictModel):
    """Page of an earlier web search."""

    type: Literal["web_search_result"] = "web_search_result"
    url: str | None = None
    title: str | None = None
    encrypted_content: str | None = None
    page_age: str | None = None


class ToolError(StrictModel):
    """Error of a tool that the server ran."""

    type: Literal["web_search_tool_result_error", "code_execution_tool_result_error"]
    error_code: str | None = None


class ResultFile(StrictModel):
    """File that code has written."""

    type: Literal["code_execution_output"] = "code_execution_output"
    file_id: str | None = None


class EarlierCodeResult(StrictModel):
    """Result of code that the server ran; another server may have encrypted the output."""

    type: Literal["code_execution_result", "encrypted_code_execution_result"] = "code_execution_result"
    stdout: str = ""
    stderr: str | None = None
    return_code: int | None = None
    content: Array[ResultFile] | None = None
    encrypted_stdout: str | None = None


def check_edits(management: ContextEdits | None) -> None:
    """Check the edits of the context, which are not made. Raises InvalidRequest."""
    for index, edit in enumerate((management.edits if management else None) or ()):
        loc: Loc = ("context_management", "edits", index)
        kind = str(edit.get("type"))
        if kind not in EDITS:
            raise invalid_value(json_path((*loc, "type")), kind, EDITS)
        validate(EDITS[kind], edit, loc)


def check_budget(budget: object) -> None:
    """Refuse a budget of tokens for a task: models of this server do not count tokens down. Raises InvalidRequest."""
    if budget is not None:
        where = "output_config.task_budget"
        reason = "models of this server are not shown a budget; limit the output of each request with 'max_tokens'"
        raise InvalidRequest(f"Unsupported parameter: '{where}': {reason}.", param=where, code="unsupported_parameter")
