"""Schemas and grammars that are to be obeyed, compiled before anything runs; the one that cannot be is named, with the reason."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from responses_app.compiler.compiler import Rejected
from responses_app.compiler.jobs import CompileJob
from responses_app.dialects.constraints import structural_tag
from responses_app.engine_interface import Constraint, Engine, RequestRejected
from responses_app.errors import InvalidRequest
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.prepare.definitions import compiled

SEARCH_LIMIT_S = 10.0
# What a compiler says of itself: the time, and the line of its source.
_SOURCE = re.compile(r"^.*\.cc:\d+: ", re.DOTALL)


async def check_constraints(engine: Engine, order: CreateRequest, constraint: Constraint | None) -> None:
    """A strict schema must be obeyed in full. Raises Invalid, Busy."""
    schema = order.format.get("schema")
    try:
        if schema is not None and order.format.get("strict"):
            await _compile(engine, order.project, Constraint("json", schema))
        if constraint is not None:
            await _compile(engine, order.project, constraint)
    except RequestRejected as error:
        raise await _locate_bad_schema(engine, order, error) from error


async def _compile(engine: Engine, project: str, constraint: Constraint) -> None:
    """Raises BadPrompt for what the engine does not take or its compiler refuses, Busy."""
    await asyncio.to_thread(engine.check_constraint, constraint)
    if not engine.has_xgrammar:
        return
    value = constraint.value
    text = value if isinstance(value, str) else await asyncio.to_thread(json.dumps, value)
    try:
        await compiled(project, CompileJob(constraint.kind, text))
    except Rejected as error:
        raise RequestRejected(str(error)) from error


async def _locate_bad_schema(engine: Engine, order: CreateRequest, error: RequestRejected) -> InvalidRequest:
    """An answer is constrained by one tag of all schemas, and a compiler says of that no more than yes or no.

    Where the search for the schema takes too long, all of them are named.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(SEARCH_LIMIT_S):
            for where, schema in _schemas(order):
                if await _try_compile(engine, order, Constraint("structural_tag", _as_tag(schema))) is not None:
                    return _invalid(where, await _try_compile(engine, order, Constraint("json", schema)) or error)
    return _invalid("text.format.schema" if "schema" in order.format else "tools", error)


def _schemas(order: CreateRequest) -> Iterator[tuple[str, dict[str, Any]]]:
    if order.format.get("schema") is not None:
        yield "text.format.schema", dict(order.format["schema"])
    for index, tool in enumerate(order.tools):
        for at, one in [("", tool), *((f".tools[{n}]", inside) for n, inside in enumerate(tool.get("tools") or ()))]:
            if isinstance(one.get("parameters"), Mapping):
                yield f"tools[{index}]{at}.parameters", dict(one["parameters"])


def _as_tag(schema: Mapping[str, Any]) -> str:
    return json.dumps({"type": "structural_tag", "format": structural_tag.json_value(schema)})


async def _try_compile(engine: Engine, order: CreateRequest, constraint: Constraint) -> RequestRejected | None:
    try:
        await _compile(engine, order.project, constraint)
    except RequestRejected as error:
        return error
    return None


def _invalid(where: str, error: RequestRejected) -> InvalidRequest:
    code = "invalid_json_schema" if where.startswith("text") else "invalid_function_parameters"
    reason = " ".join(_SOURCE.sub("", str(error)).split())
    return InvalidRequest(f"Invalid schema: {reason}", param=where, code=code)
