"""`text.format` of a request and of a configuration update."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from responses_app.errors import InvalidRequest
from responses_app.schemas.json_schema.limits import complexity_problem
from responses_app.schemas.json_schema.strict import strict_problem
from responses_app.schemas.tools import Name
from responses_app.validation.base import StrictModel
from responses_app.validation.errors import Loc, json_path, missing


class OutputFormat(StrictModel):
    """`text.format`."""

    type: Literal["text", "json_schema", "json_object"]
    name: Name | None = None
    description: str | None = None
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    strict: bool | None = None


def parse_text_format(given: OutputFormat | None, loc: Loc = ("text", "format")) -> dict[str, Any]:
    """Return the format as the response repeats it. Raises InvalidRequest."""
    if given is None:
        return {"type": "text"}
    if given.type != "json_schema":
        _check_without_schema(given, loc)
        return {"type": given.type}
    for name, found in (("name", given.name), ("schema", given.schema_)):
        if found is None:
            raise missing((*loc, name))
    assert given.schema_ is not None  # noqa: S101 - checked above
    problem = (strict_problem(given.schema_) if given.strict else None) or complexity_problem(given.schema_)
    if problem is not None:
        message = f"Invalid schema for response_format '{given.name}': {problem}"
        raise InvalidRequest(message, param=json_path((*loc, "schema")), code="invalid_json_schema")
    return {
        "type": "json_schema",
        "name": given.name,
        "description": given.description,
        "schema": given.schema_,
        "strict": bool(given.strict),
    }


def _check_without_schema(given: OutputFormat, loc: Loc) -> None:
    """Reject fields of `json_schema` in a format of another type. Raises InvalidRequest."""
    for name in given.model_dump(exclude_none=True, by_alias=True):
        if name != "type":
            where = json_path((*loc, name))
            message = f"Unknown parameter: '{where}': a format of type '{given.type}' has none."
            raise InvalidRequest(message, param=where, code="unknown_parameter")
