"""Container that runs: a work folder, and an interpreter that starts with the first run."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from responses_app.sandbox.base import ContainerExpired, OnOutput, RunResult, SandboxUnavailable
from responses_app.sandbox.inside.interpreter import NICE
from responses_app.sandbox.options import RunnerOptions
from responses_app.sandbox.runner import cgroups, process_table
from responses_app.sandbox.runner.interpreter_process import InterpreterAnswer, InterpreterEnded, InterpreterProcess
from responses_app.sandbox.runner.work_folder import WorkFolder, changed_files, undecodable_names_notice

logger = logging.getLogger("responses.sandbox")

VARIABLES_LOST = "The interpreter was started again; all variables are lost. Files in /mnt/data remain."
LOST_BEFORE = (
    "The interpreter had ended between the calls: {}. This call ran in a new interpreter: variables of earlier calls are lost, "
    "and files in /mnt/data are still there."
)


class LiveContainer:
    """Container with a mounted work folder. The interpreter starts with the first run, and again after the end."""

    def __init__(
        self, container_id: str, project: str, memory_mib: int, work: WorkFolder, bwrap: str, options: RunnerOptions
    ) -> None:
        self.container_id, self.project, self.memory_mib, self.work = container_id, project, memory_mib, work
        self.last_used = 0.0
        self.users = 0
        # Runs that have begun or wait for a place of the project. While all wait, another project may end the container.
        self.pending_runs = 0
        self.turn = asyncio.Lock()
        # Set when the stored files are in the work folder, and at the end of the container.
        self.has_files = asyncio.Event()
        # Priority of the next run.
        self.nice = NICE
        self.is_deleted = False
        self.interpreter: InterpreterProcess | None = None
        self._bwrap, self._options = bwrap, options
        self._cgroup = cgroups.create(options.cgroup, container_id, memory_mib, options.max_processes)
        self._running = asyncio.Lock()

    @property
    def is_running_code(self) -> bool:
        """Return True during a run."""
        return self._running.locked()

    async def start(self) -> InterpreterProcess:
        """Return the interpreter, which is started unless it runs. Raises SandboxUnavailable, ContainerExpired."""
        if self.is_deleted:
            raise expired_error(self.container_id)
        if self.interpreter is None:
            self.interpreter = await self._start_interpreter()
            if self._options.startup_code:
                await self._run_startup_code(self.interpreter)
        return self.interpreter

    async def run(self, code: str, on_output: OnOutput) -> RunResult:
        """Run code and return the result without the output, which `on_output` takes."""
        async with self._running:
            notices = await self._replace_lost_interpreter()
            interpreter = await self.start()
            await interpreter.set_nice(self.nice)
            before = await asyncio.to_thread(self.work.states)
            error: str | None = None
            outcome: InterpreterAnswer | None = None
            try:
                outcome = await interpreter.run(code, on_output, self._options.run_timeout_s)
            except InterpreterEnded as ended:
                error = f"{ended}. {VARIABLES_LOST}"
            finally:
                if outcome is None:
                    await asyncio.shield(self.stop_interpreter())
            after = await asyncio.to_thread(self.work.states)
            deleted = await asyncio.to_thread(self.work.take_deleted)
        result = RunResult(
            error=error,
            was_killed=outcome is None,
            files=changed_files(before, after),
            # The work folder of a deleted container is unmounted.
            deleted=() if self.is_deleted else deleted,
            notices=(*notices, *undecodable_names_notice(before, after)),
        )
        if outcome is None:
            return result
        value, error, figures, is_truncated = outcome.value, outcome.error, outcome.figures, outcome.is_truncated
        return replace(result, value=value, error=error, figures=figures, is_truncated=is_truncated)

    async def _replace_lost_interpreter(self) -> tuple[str, ...]:
        """End an interpreter that has ended since the last run. Return a notice: the next code is not the reason."""
        reason = None if self.interpreter is None else await self.interpreter.end_reason()
        if reason is None:
            return ()
        await asyncio.shield(self.stop_interpreter())
        return (LOST_BEFORE.format(reason),)

    async def _start_interpreter(self) -> InterpreterProcess:
        """Start an interpreter. Raises SandboxUnavailable, and ContainerExpired if the container is deleted meanwhile."""
        arguments = self._bwrap, self.work.root, self.memory_mib, self._options, self._cgroup
        try:
            interpreter = await InterpreterProcess.start(*arguments)
        except (SandboxUnavailable, OSError):
            if self.is_deleted:  # The start fails without the work folder or the cgroup.
                raise expired_error(self.container_id) from None
            raise
        if self.is_deleted:  # `close` has found no interpreter.
            await asyncio.shield(interpreter.close())
            raise expired_error(self.container_id)
        return interpreter

    async def _run_startup_code(self, interpreter: InterpreterProcess) -> None:
        """Run the code of the operator. An exception is logged, and the container works without the rest of the code."""
        completed = False
        try:
            timeout_s = self._options.run_timeout_s
            answer = await interpreter.run(self._options.startup_code, lambda *_: None, timeout_s, is_startup=True)
            completed = True
        except InterpreterEnded as ended:
            raise SandboxUnavailable(f"the code of RESPONSES_CONTAINER_STARTUP ended the interpreter: {ended}") from ended
        finally:
            if not completed:
                await asyncio.shield(self.stop_interpreter())
        if answer.error:
            logger.warning("RESPONSES_CONTAINER_STARTUP: %s", answer.error)

    async def stop_interpreter(self) -> None:
        """End the interpreter; the files remain."""
        interpreter, self.interpreter = self.interpreter, None
        if interpreter is not None:
            await interpreter.close()

    async def close(self) -> None:
        """End the interpreter and free the files."""
        self.is_deleted = True
        self.has_files.set()
        await self.stop_interpreter()
        self.work.unmount()
        cgroups.remove(self._cgroup)

    async def check_memory(self, table: process_table.ProcessTable) -> None:
        """End an interpreter whose processes use more memory than the container may have."""
        interpreter, limit = self.interpreter, self.memory_mib * 1024 * 1024
        if interpreter is None:
            return
        used = await asyncio.to_thread(process_table.memory_in_use, table, interpreter.pid, limit)
        if used > limit and self.interpreter is interpreter:
            code = "The code" if self.is_running_code else "The code of an earlier call"
            interpreter.kill(f"{code} used more than {self.memory_mib} MiB of memory")


def expired_error(container_id: str) -> ContainerExpired:
    """Return the error for a container that does not run any more."""
    return ContainerExpired(
        f"Container {container_id} has expired or was deleted; its variables and files are lost. Create a new container."
    )
