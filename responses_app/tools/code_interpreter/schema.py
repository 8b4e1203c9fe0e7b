"""Schemas of the code interpreter: the declaration in a request, and a call as an input item."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from responses_app.validation.base import (
    Array,
    CallEnding,
    Direct,
    FileId,
    LongText,
    Objects,
    StrictModel,
    drop_nulls,
    validate,
)
from responses_app.validation.errors import Loc, invalid, json_path, shorten, wrong_type

MAX_CONTAINER_FILES: Final = 50
_CONTAINER_ID = re.compile(r"cntr_[A-Za-z0-9_-]{1,120}")


class CodeInterpreterTool(StrictModel):
    """Code interpreter. `container` is the id of a container, or an `AutoContainer`."""

    type: Literal["code_interpreter"]
    container: Any
    allowed_callers: Direct


class AutoContainer(StrictModel):
    """Container that the server makes for a request, or that an earlier response of the same conversation has made."""

    type: Literal["auto"]
    file_ids: Annotated[Array[FileId], Field(max_length=MAX_CONTAINER_FILES)] | None = None
    memory_limit: Literal["1g", "4g", "16g", "64g"] | None = None
    network_policy: Any = None


class NetworkPolicy(StrictModel):
    """Network access of a container. The sandbox has no network, so an allowlist is refused."""

    type: Literal["disabled"]


class CodeInterpreterCallInput(StrictModel):
    """Call of the code interpreter in the input."""

    type: Literal["code_interpreter_call"]
    id: str | None = None
    code: LongText | None = None
    container_id: str | None = None
    outputs: Objects | None = None
    status: CallEnding | None = None


def parse_code_interpreter(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    """Parse a declared code interpreter to the form that the response repeats. Raises InvalidRequest."""
    tool = validate(CodeInterpreterTool, raw, loc)
    return {"type": tool.type, "container": _container(tool.container, (*loc, "container"))}


def parse_network_policy(raw: object, loc: Loc) -> dict[str, Any]:
    """Parse the network policy of a container. Raises InvalidRequest."""
    raw = drop_nulls(raw, loc)
    if raw.get("type") == "allowlist":
        problem = "containers of this server have no network access; only 'disabled' is supported."
        raise invalid((*loc, "type"), problem, "unsupported_value")
    return validate(NetworkPolicy, raw, loc).model_dump()


def _container(raw: object, loc: Loc) -> str | dict[str, Any]:
    """Parse the id of a container, or the options of a new container. Raises InvalidRequest."""
    if isinstance(raw, str):
        if not _CONTAINER_ID.fullmatch(raw):
            raise invalid(loc, f"'{shorten(raw)}'. Expected the id of a container, which begins with 'cntr_'.")
        return raw
    if not isinstance(raw, dict):
        raise wrong_type(json_path(loc), "a string or an object", raw)
    container = validate(AutoContainer, raw, loc)
    policy = {}
    if container.network_policy is not None:
        policy = {"network_policy": parse_network_policy(container.network_policy, (*loc, "network_policy"))}
    return {**container.model_dump(exclude_none=True, exclude={"network_policy"}), **policy}
