"""Compile check of schemas and grammars before a run, with errors that name the schema and the reason."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from responses_app.compiler.compiler import Rejected
from responses_app.compiler.jobs import CompileJob
from responses_app.dialects.constraints import structural_tag
from responses_app.engine_interface import Constraint, Engine, RequestRejected
from responses_app.errors import InvalidRequest
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.prepare.grammars.definitions import compiled

SEARCH_LIMIT_S = 10.0
# Prefix of compiler messages: time and source line.
_SOURCE = re.compile(r"^.*\.cc:\d+: ", re.DOTALL)


async def check_constraints(engine: Engine, create_request: CreateRequest, constraint: Constraint | None) -> Constraint | None:
    """Compile the strict schema and the constraint of the request; return the constraint with the bounds of the compiler.

    Raises InvalidRequest, RateLimited.
    """
    schema = create_request.format.get("schema")
    try:
        if schema is not None and create_request.format.get("strict"):
            await _compile(engine, create_request.project, Constraint("json", schema))
        return constraint and await _compile(engine, create_request.project, constraint)
    except RequestRejected as error:
        raise await _locate_bad_schema(engine, create_request, error) from error


async def _compile(engine: Engine, project: str, constraint: Constraint) -> Constraint:
    """Compile a constraint; return the constraint with bounds.

    Raises RequestRejected if the engine or the compiler refuses the constraint, and RateLimited.
    """
    await asyncio.to_thread(engine.check_constraint, constraint)
    if not engine.has_xgrammar:
        return constraint
    value = constraint.value
    text = value if isinstance(value, str) else await asyncio.to_thread(json.dumps, value)
    try:
        bounded = await compiled(project, CompileJob(constraint.kind, text))
    except Rejected as error:
        raise RequestRejected(str(error)) from error
    return replace(constraint, value=await asyncio.to_thread(json.loads, bounded)) if bounded else constraint


async def _locate_bad_schema(engine: Engine, create_request: CreateRequest, error: RequestRejected) -> InvalidRequest:
    """Find the schema that the compiler refuses: the error concerns the structural tag of all schemas together.

    The error names all schemas if the search takes longer than SEARCH_LIMIT_S seconds.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(SEARCH_LIMIT_S):
            for where, schema in _schemas(create_request):
                if await _try_compile(engine, create_request, Constraint("structural_tag", _as_tag(schema))) is not None:
                    return _invalid(where, await _try_compile(engine, create_request, Constraint("json", schema)) or error)
    return _invalid("text.format.schema" if "schema" in create_request.format else "tools", error)


def _schemas(create_request: CreateRequest) -> Iterator[tuple[str, dict[str, Any]]]:
    if create_request.format.get("schema") is not None:
        yield "text.format.schema", dict(create_request.format["schema"])
    for index, tool in enumerate(create_request.tools):
        for at, one in [("", tool), *((f".tools[{n}]", inside) for n, inside in enumerate(tool.get("tools") or ()))]:
            if isinstance(one.get("parameters"), Mapping):
                yield f"tools[{index}]{at}.parameters", dict(one["parameters"])


def _as_tag(schema: Mapping[str, Any]) -> str:
    return json.dumps({"type": "structural_tag", "format": structural_tag.json_value(schema)})


async def _try_compile(engine: Engine, create_request: CreateRequest, constraint: Constraint) -> RequestRejected | None:
    try:
        await _compile(engine, create_request.project, constraint)
    except RequestRejected as error:
        return error
    return None


def _invalid(where: str, error: RequestRejected) -> InvalidRequest:
    code = "invalid_json_schema" if where.startswith("text") else "invalid_function_parameters"
    reason = " ".join(_SOURCE.sub("", str(error)).split())
    return InvalidRequest(f"Invalid schema: {reason}", param=where, code=code)
