"""Code interpreter: the declaration of the server tool."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from django.conf import settings

from responses_app.protocol.deltas import CodeResult
from responses_app.tools.base import Json, ToolExecutor
from responses_app.tools.code_interpreter.functions import FUNCTIONS, PAST_CALLS, TYPES, without_picture
from responses_app.tools.code_interpreter.schema import CodeInterpreterCallInput, parse_code_interpreter
from responses_app.tools.declaration import OptionalParts, ServerTool, ToolCallContext

OUTPUTS: Final = "code_interpreter_call.outputs"


def _open(context: ToolCallContext) -> ToolExecutor | None:
    # Without a sandbox the request is refused, when the planner checks what the tools refer to.
    if not settings.RESPONSES_SANDBOX_URL:
        return None
    from responses_app.tools.code_interpreter.executor import open_executor

    return open_executor(context)


async def _check(project: str, declared: Json, path: str) -> None:
    from responses_app.tools.code_interpreter import resources

    await resources.check(project, declared, path)


def _parts_of(result: CodeResult) -> Json:
    return {"outputs": [without_picture(output) for output in result.outputs or ()]}


def _drop(result: CodeResult, include: Collection[str]) -> CodeResult:
    return result if OUTPUTS in include else replace(result, outputs=None)


CODE_INTERPRETER: Final = ServerTool(
    name="code_interpreter",
    types=TYPES,
    functions=FUNCTIONS,
    past_calls=PAST_CALLS,
    open=_open,
    parse=parse_code_interpreter,
    input_items={"code_interpreter_call": CodeInterpreterCallInput},
    setting="RESPONSES_SANDBOX_URL",
    check=_check,
    includes=(OUTPUTS,),
    optional_parts={CodeResult: OptionalParts(_parts_of, _drop)},
)
