"""Grammars of custom tools: conversion to EBNF in the compiler pool, with errors that name the path of the grammar."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from responses_app.compiler import compiler
from responses_app.compiler.jobs import CompileJob
from responses_app.errors import InvalidRequest, RateLimited

Json: TypeAlias = Mapping[str, Any]
_HAVE_TOOLS = ("additional_tools", "tool_search_output")


class Definitions:
    """EBNF of converted formats."""

    def __init__(self, known: Mapping[tuple[str, str], str]) -> None:
        self._known = known

    def ebnf(self, form: Json) -> str | None:
        """Return the EBNF of `form`; None if the format is not a grammar."""
        return self._known[form["syntax"], form["definition"]] if form.get("type") == "grammar" else None


async def check(project: str, tools: Sequence[Json], items: Sequence[Json], name: str = "input") -> None:
    """Convert all grammars of `tools` and of tools in `items`, the request parameter `name`. Raises InvalidRequest, RateLimited."""
    invalid_formats = [*_formats("tools", tools)]
    for index, item in enumerate(items):
        if item.get("type") in _HAVE_TOOLS:
            invalid_formats += _formats(f"{name}[{index}].tools", item["tools"])
    for where, form in invalid_formats:
        await _converted(project, form, f"{where}.definition")


async def convert(project: str, forms: Iterable[Json]) -> Definitions:
    """Convert the grammars of `forms`, which were checked before. Raises InvalidRequest, RateLimited."""
    grammars = [form for form in forms if form.get("type") == "grammar"]
    return Definitions({(form["syntax"], form["definition"]): await _converted(project, form, "tools") for form in grammars})


async def compiled(project: str, job: CompileJob) -> str:
    """Run a job in the compiler pool and return the result. Raises Rejected, RateLimited."""
    try:
        return await compiler.shared.run(project, job)
    except compiler.Overloaded as error:
        raise RateLimited(str(error)) from error


async def _converted(project: str, form: Json, where: str) -> str:
    job = CompileJob("lark_to_ebnf" if form["syntax"] == "lark" else "regex_to_ebnf", form["definition"])
    try:
        return await compiled(project, job)
    except compiler.Rejected as error:
        raise InvalidRequest(f"Invalid '{where}': {error}.", param=where, code="invalid_grammar") from error


def _formats(where: str, tools: Sequence[Json]) -> Iterator[tuple[str, Json]]:
    for index, tool in enumerate(tools):
        if tool.get("type") == "namespace":
            yield from _formats(f"{where}[{index}].tools", tool["tools"])
        elif tool.get("type") == "custom" and (tool.get("format") or {}).get("type") == "grammar":
            yield f"{where}[{index}].format", tool["format"]
