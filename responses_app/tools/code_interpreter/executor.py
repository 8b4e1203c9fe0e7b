"""Code interpreter of a run: the container, the calls and the files that the code writes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from responses_app.dialects.citations.sources import Sources
from responses_app.observability.records import current_response
from responses_app.protocol.deltas import Delta
from responses_app.protocol.items.server_tools.code_interpreter import CodeCall, CodeResult, CodeStarted
from responses_app.protocol.items.server_tools.tool_result import MODEL_OUTPUT
from responses_app.sandbox.base import SandboxError, SandboxUnavailable
from responses_app.tools import sandbox_access
from responses_app.tools.base import Json
from responses_app.tools.base_executor import ServerToolExecutor
from responses_app.tools.code_interpreter.containers import ContainerProblem, ContainerSession
from responses_app.tools.code_interpreter.functions import FUNCTIONS, TYPES
from responses_app.tools.code_interpreter.results import code_result, has_written
from responses_app.tools.declaration import ToolCallContext
from responses_app.tools.limits import ToolLimits
from responses_app.tools.offer import ServerToolOffer

logger = logging.getLogger("responses.tools")

CALL = "code_interpreter_call"
MAX_CODE_BYTES = 256 * 1024


class CodeInterpreterExecutor(ServerToolExecutor):
    """Code interpreter of a run, a `ToolExecutor`."""

    call_type = CALL
    repeatable = False

    def __init__(self, session: ContainerSession, limits: ToolLimits) -> None:
        self._session, self._limits = session, limits

    async def prepare(self, items: Sequence[Json]) -> None:
        """Choose the container: the one of the request, else that of the newest call among `items`, else a new one.

        Calls in the input may lack a container: Messages have no place for the id.
        """
        await self._session.choose(
            [item["container_id"] for item in items if item["type"] == CALL and item.get("container_id")]
        )

    def offer(self, items: Sequence[Json]) -> ServerToolOffer:
        """Return the offer. The sources are files from before the response, and files that calls of `items` have written.

        Files that later calls write are no sources, so a new owner of the run makes the same annotations from the same items.
        """
        texts = [item[MODEL_OUTPUT].text or "" for item in items if item["type"] == CALL and MODEL_OUTPUT in item]
        citable = self._session.citable.items()
        files = {
            path: file for path, file in citable if self._session.is_older(file) or any(has_written(one, path) for one in texts)
        }
        sources = Sources(container_files=files)
        return ServerToolOffer(TYPES, FUNCTIONS, lambda _: CodeCall(self._session.container_id), sources=sources)

    async def run(self, call: Json, report: Callable[[Delta], None]) -> Delta:
        """Run the code of `call` in the container."""
        code = call["code"]
        if len(code.encode("utf-8", "replace")) > MAX_CODE_BYTES:
            return self.failure(call, f"The code is longer than {MAX_CODE_BYTES} bytes and was not run.")
        try:
            result, notices = await self._session.run(call["container_id"], code, lambda: report(CodeStarted()))
        except (ContainerProblem, SandboxError) as error:
            if isinstance(error, SandboxUnavailable):
                logger.warning("%s: code interpreter: %s", current_response.get(), error)
            return self.failure(call, str(error))
        return code_result(result, notices, self._limits)

    def failure(self, call: Json, message: str) -> Delta:
        """Return the end of a call that failed with `message`."""
        del call
        return CodeResult([{"type": "logs", "logs": message}], failed=True, model_text=message)

    async def close(self) -> None:
        """Close the connections to the sandbox. The container stays until it expires."""
        await self._session.close()


def open_executor(context: ToolCallContext) -> CodeInterpreterExecutor:
    """Return the executor of the tool for a request."""
    session = ContainerSession(
        context.project,
        context.declared["container"],
        f"cntr_{context.response_uid.partition('_')[2]}",
        sandbox_access.sandbox_client(),
        context.new_id,
    )
    return CodeInterpreterExecutor(session, ToolLimits.from_settings())
