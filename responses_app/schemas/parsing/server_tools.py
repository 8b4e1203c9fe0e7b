"""Server tools of a request, validated and normalised to the form that the response repeats."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from pydantic import ValidationError

from responses_app.errors import InvalidRequest
from responses_app.schemas.base import StrictModel, drop_nulls
from responses_app.schemas.errors import Loc, json_path, shorten, translate, wrong_type
from responses_app.schemas.parsing.attribute_filters import parse_filters
from responses_app.schemas.server_tools import (
    AutoContainer,
    CodeInterpreterTool,
    FileSearchTool,
    NetworkPolicy,
    SearchLocation,
    SearchOptions,
    WebSearchPreviewTool,
    WebSearchTool,
)
from responses_app.schemas.tools import is_run_by_server
from responses_app.tools.registry import SERVER_TOOLS

Parser: TypeAlias = Callable[[Mapping[str, Any], Loc], dict[str, Any]]
_Model = TypeVar("_Model", bound=StrictModel)
_CONTAINER_ID = re.compile(r"cntr_[A-Za-z0-9_-]{1,120}")
# Location of a user who names none, as in the OpenAI API.
_DEFAULT_LOCATION: Final = SearchLocation(country="US")


def check_single(tools: Sequence[Mapping[str, Any]], loc: Loc) -> None:
    """Check that each server tool is declared once. Raises InvalidRequest."""
    for server_tool in SERVER_TOOLS:
        types = server_tool.types
        found = [index for index, tool in enumerate(tools) if tool["type"] in types and is_run_by_server(tool["type"])]
        if len(found) > 1:
            where = json_path((*loc, found[1], "type"))
            message = f"Invalid '{where}': the tool '{tools[found[1]]['type']}' is declared twice."
            raise InvalidRequest(message, param=where, code="invalid_value")


def _validate(model: type[_Model], raw: object, loc: Loc) -> _Model:
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise translate(error, loc, model.model_fields) from error


def _code_interpreter(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    tool = _validate(CodeInterpreterTool, raw, loc)
    return {"type": tool.type, "container": _container(tool.container, (*loc, "container"))}


def _container(raw: object, loc: Loc) -> str | dict[str, Any]:
    """Parse the id of a container, or the options of a new container. Raises InvalidRequest."""
    if isinstance(raw, str):
        if not _CONTAINER_ID.fullmatch(raw):
            where = json_path(loc)
            message = f"Invalid '{where}': '{shorten(raw)}'. Expected the id of a container, which begins with 'cntr_'."
            raise InvalidRequest(message, param=where, code="invalid_value")
        return raw
    if not isinstance(raw, dict):
        raise wrong_type(json_path(loc), "a string or an object", raw)
    container = _validate(AutoContainer, raw, loc)
    policy = {}
    if container.network_policy is not None:
        policy = {"network_policy": parse_network_policy(container.network_policy, (*loc, "network_policy"))}
    return {**container.model_dump(exclude_none=True, exclude={"network_policy"}), **policy}


def parse_network_policy(raw: object, loc: Loc) -> dict[str, Any]:
    """Parse the network policy of a container. Raises InvalidRequest."""
    raw = drop_nulls(raw, loc)
    if raw.get("type") == "allowlist":
        where = json_path((*loc, "type"))
        message = f"Invalid '{where}': containers of this server have no network access; only 'disabled' is supported."
        raise InvalidRequest(message, param=where, code="unsupported_value")
    return _validate(NetworkPolicy, raw, loc).model_dump()


def _web_search(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    tool = _validate(WebSearchTool, raw, loc)
    access = {} if tool.external_web_access is None else {"external_web_access": tool.external_web_access}
    filters = None if tool.filters is None else tool.filters.model_dump(exclude_none=True)
    budget = tool.return_token_budget or "default"
    return {"type": tool.type, **_search(tool), "filters": filters, "return_token_budget": budget, **access}


def _web_search_preview(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    tool = _validate(WebSearchPreviewTool, raw, loc)
    return {"type": tool.type, **_search(tool)}


def _search(tool: SearchOptions) -> dict[str, Any]:
    return {
        "search_content_types": tool.search_content_types or ["text"],
        "search_context_size": tool.search_context_size,
        "user_location": (tool.user_location or _DEFAULT_LOCATION).model_dump(),
    }


def _file_search(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    tool = _validate(FileSearchTool, raw, loc)
    return {
        "type": tool.type,
        "vector_store_ids": tool.vector_store_ids,
        "max_num_results": tool.max_num_results,
        "filters": None if tool.filters is None else parse_filters(tool.filters, (*loc, "filters")),
        "ranking_options": tool.ranking_options.model_dump(exclude_none=True),
    }


# Parsers by the type of the tool.
PARSERS: Final[Mapping[str, Parser]] = {
    "code_interpreter": _code_interpreter,
    "file_search": _file_search,
    "web_search": _web_search,
    "web_search_2025_08_26": _web_search,
    "web_search_preview": _web_search_preview,
    "web_search_preview_2025_03_11": _web_search_preview,
}
