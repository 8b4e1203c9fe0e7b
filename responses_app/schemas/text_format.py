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


def parse_text_format(output_format: OutputFormat | None, loc: Loc = ("text", "format")) -> dict[str, Any]:
    """Return the format as the response repeats it. Raises InvalidRequest."""
    if output_format is None:
        return {"type": "text"}
    if output_format.type != "json_schema":
        _check_without_schema(output_format, loc)
        return {"type": output_format.type}
    for name, field_value in (("name", output_format.name), ("schema", output_format.schema_)):
        if field_value is None:
            raise missing((*loc, name))
    assert output_format.schema_ is not None  # noqa: S101 - checked above
    problem = (strict_problem(output_format.schema_) if output_format.strict else None) or complexity_problem(
        output_format.schema_
    )
    if problem is not None:
        message = f"Invalid schema for response_format '{output_format.name}': {problem}"
        raise InvalidRequest(message, param=json_path((*loc, "schema")), code="invalid_json_schema")
    return {
        "type": "json_schema",
        "name": output_format.name,
        "description": output_format.description,
        "schema": output_format.schema_,
        "strict": bool(output_format.strict),
    }


def _check_without_schema(output_format: OutputFormat, loc: Loc) -> None:
    """Reject fields of `json_schema` in a format of another type. Raises InvalidRequest."""
    for name in output_format.model_dump(exclude_none=True, by_alias=True):
        if name != "type":
            where = json_path((*loc, name))
            message = f"Unknown parameter: '{where}': a format of type '{output_format.type}' has none."
            raise InvalidRequest(message, param=where, code="unknown_parameter")
