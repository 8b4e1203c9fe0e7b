"""Grammars and schemas of a request: converted and checked by the compiler, with errors that name the path and the reason."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from responses_app.compiler import compiler
from responses_app.compiler.compiler import Rejected
from responses_app.compiler.jobs import CompileJob
from responses_app.dialects.constraints import structural_tag
from responses_app.engine_interface import Constraint, Engine, RequestRejected
from responses_app.errors import InvalidRequest, RateLimited
from responses_app.runs.create_request import CreateRequest

Json: TypeAlias = Mapping[str, Any]
_HAVE_TOOLS = ("additional_tools", "tool_search_output")
SEARCH_LIMIT_S = 10.0
# Prefix of compiler messages: time and source line.
_SOURCE = re.compile(r"^.*\.cc:\d+: ", re.DOTALL)


class ConvertedGrammars:
    """EBNF of the converted formats of custom tools."""

    def __init__(self, known: Mapping[tuple[str, str], str]) -> None:
        self._known = known

    def ebnf(self, form: Json) -> str | None:
        """Return the EBNF of `form`; None if the format is not a grammar."""
        return self._known[form["syntax"], form["definition"]] if form.get("type") == "grammar" else None


async def check_grammars(project: str, tools: Sequence[Json], items: Sequence[Json], name: str = "input") -> None:
    """Convert all grammars of `tools` and of tools in `items`, the request parameter `name`. Raises InvalidRequest, RateLimited."""
    formats = [*_formats("tools", tools)]
    for index, item in enumerate(items):
        if item.get("type") in _HAVE_TOOLS:
            formats += _formats(f"{name}[{index}].tools", item["tools"])
    for where, form in formats:
        await _converted(project, form, f"{where}.definition")


async def convert_grammars(project: str, forms: Iterable[Json]) -> ConvertedGrammars:
    """Convert the grammars of `forms`, which were checked before. Raises InvalidRequest, RateLimited."""
    grammars = [form for form in forms if form.get("type") == "grammar"]
    return ConvertedGrammars(
        {(form["syntax"], form["definition"]): await _converted(project, form, "tools") for form in grammars}
    )


async def _compiled(project: str, job: CompileJob) -> str:
    """Run a job in the compiler pool and return the result. Raises Rejected, RateLimited."""
    try:
        return await compiler.shared.run(project, job)
    except compiler.Overloaded as error:
        raise RateLimited(str(error)) from error


async def _converted(project: str, form: Json, where: str) -> str:
    job = CompileJob("lark_to_ebnf" if form["syntax"] == "lark" else "regex_to_ebnf", form["definition"])
    try:
        return await _compiled(project, job)
    except Rejected as error:
        raise InvalidRequest(f"Invalid '{where}': {error}.", param=where, code="invalid_grammar") from error


def _formats(where: str, tools: Sequence[Json]) -> Iterator[tuple[str, Json]]:
    for index, tool in enumerate(tools):
        if tool.get("type") == "namespace":
            yield from _formats(f"{where}[{index}].tools", tool["tools"])
        elif tool.get("type") == "custom" and (tool.get("format") or {}).get("type") == "grammar":
            yield f"{where}[{index}].format", tool["format"]


async def check_constraints(
    engine: Engine,
    create_request: CreateRequest,
    constraint: Constraint | None,
    with_any_objects: Callable[[], Constraint | None] = lambda: None,
) -> Constraint | None:
    """Compile the strict schema and the constraint of the request; return the constraint with the bounds of the compiler.

    `with_any_objects` builds the constraint in which arguments of tools without `strict` are any object, None if there are no such
    tools. These promise nothing, so it replaces a constraint that the compiler refuses, as on a slow machine.

    Raises InvalidRequest, RateLimited.
    """
    schema, compile_one = create_request.format.get("schema"), partial(_compile, engine, create_request.project)
    try:
        if schema is not None and create_request.format.get("strict"):
            await compile_one(Constraint("json", schema))
        if constraint is None:
            return None
        try:
            return await compile_one(constraint)
        except RequestRejected:
            if (replacement := with_any_objects()) is None:
                raise
            return await compile_one(replacement)
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
        bounded = await _compiled(project, CompileJob(constraint.kind, text))
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
    """Iterate over the schemas that the answer must follow, with their paths."""
    if create_request.format.get("schema") is not None:
        yield "text.format.schema", dict(create_request.format["schema"])
    for index, tool in enumerate(create_request.tools):
        for at, one in [("", tool), *((f".tools[{n}]", inside) for n, inside in enumerate(tool.get("tools") or ()))]:
            if one.get("strict") and isinstance(one.get("parameters"), Mapping):
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
