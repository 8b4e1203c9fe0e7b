"""Containers by id, with limits on number, memory and idle time."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from responses_app.sandbox.base import (
    MEMORY_TIERS,
    ContainerStatus,
    SandboxBusy,
    SandboxError,
    SandboxUnavailable,
)
from responses_app.sandbox.options import RunnerOptions
from responses_app.sandbox.runner import priority, process_table
from responses_app.sandbox.runner.live_container import LiveContainer, expired_error
from responses_app.sandbox.runner.work_folder import WorkFolder
from responses_app.utils.shares import ProjectShares, ShareExceeded, reserved_places

CONTAINER_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
WATCH_INTERVAL_S = 0.1
# Containers that run no code are looked at in every tenth round.
IDLE_ROUNDS = 10
EXPIRY_INTERVAL_S = 5.0


class ContainerRegistry:
    """Containers by id. `clock` returns seconds."""

    def __init__(self, folder: Path, bwrap: str, options: RunnerOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._bwrap, self._options, self._clock = folder, bwrap, options, clock
        self._containers: dict[str, LiveContainer] = {}
        self._mounted = 0
        self._places = ProjectShares(options.max_containers, wait_s=options.busy_wait_s)

    async def create(self, container_id: str, memory: str, project: str = "") -> ContainerStatus:
        """Return the status of a new or running container. At the limit, an unused container is ended.

        Raises SandboxBusy, SandboxError.
        """
        container, is_new = await self._get_or_add(container_id, memory, project)
        if is_new:
            container.has_files.set()
        return self._status(container)

    async def create_empty(self, container_id: str, memory: str, project: str = "") -> bool:
        """Create a container whose runs wait for `note_files`, unless the container exists. Return whether it is new.

        Raises SandboxBusy, SandboxError.
        """
        return (await self._get_or_add(container_id, memory, project))[1]

    def note_files(self, container_id: str) -> None:
        """Let the runs of a container begin, after the copy of the files. Raises ContainerExpired."""
        self._get(container_id).has_files.set()

    def status(self, container_id: str) -> ContainerStatus:
        """Return the status. Raises ContainerExpired."""
        return self._status(self._get(container_id))

    @asynccontextmanager
    async def use(self, container_id: str) -> AsyncIterator[LiveContainer]:
        """Yield a container, which does not expire meanwhile. Raises ContainerExpired."""
        container = self._get(container_id)
        container.users += 1
        try:
            yield container
        finally:
            container.users -= 1
            container.last_used = self._clock()

    @asynccontextmanager
    async def use_for_run(self, container_id: str) -> AsyncIterator[LiveContainer]:
        """Yield a container for a run, after other runs of the container and a wait for a place of the project.

        Raises ContainerExpired, SandboxBusy.
        """
        container = self._get(container_id)
        container.pending_runs += 1
        try:
            await self._wait_for_files(container)
            async with container.turn, self._place_for_code(container.project), self.use(container_id) as used:
                running = sum(one.is_running_code for one in self._containers.values() if one.project == container.project)
                used.nice = priority.nice_of_run(running + 1)
                yield used
        finally:
            container.pending_runs -= 1

    async def delete(self, container_id: str) -> None:
        """End a container. An unknown id is no error."""
        container = self._containers.pop(container_id, None)
        if container is not None:
            await asyncio.shield(container.close())

    async def expire(self) -> None:
        """End containers that were not used for the idle time."""
        now = self._clock()
        for container in list(self._containers.values()):
            if not container.users and now - container.last_used >= self._options.idle_s:
                await self.delete(container.container_id)

    async def expire_regularly(self) -> None:
        """Call `expire` for ever."""
        while True:
            await asyncio.sleep(EXPIRY_INTERVAL_S)
            await self.expire()

    async def watch_memory(self) -> None:
        """Check the memory of containers with an interpreter, for ever."""
        for number in itertools.count():
            await asyncio.sleep(WATCH_INTERVAL_S)
            is_idle_round = number % IDLE_ROUNDS == 0
            containers = [each for each in self._containers.values() if each.is_running_code or is_idle_round]
            if any(container.interpreter is not None for container in containers):
                table = await asyncio.to_thread(process_table.ProcessTable.read)
                await asyncio.gather(*(container.check_memory(table) for container in containers))

    async def close(self) -> None:
        """End all containers."""
        for container_id in list(self._containers):
            await self.delete(container_id)

    async def _wait_for_files(self, container: LiveContainer) -> None:
        """Wait for the files of the container, which is ended if none comes for `busy_wait_s`. Raises ContainerExpired."""
        wait_s = self._options.busy_wait_s
        while not container.has_files.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(container.has_files.wait(), wait_s)
            is_late = not container.users and self._clock() - container.last_used >= wait_s
            if not container.has_files.is_set() and is_late:
                # The process that copies the files has died.
                await self.delete(container.container_id)
        if container.is_deleted:
            raise expired_error(container.container_id)

    async def _get_or_add(self, container_id: str, memory: str, project: str) -> tuple[LiveContainer, bool]:
        """Return a container, and whether it is new."""
        while container_id not in self._containers and len(self._containers) >= self._options.max_containers:
            await self.delete(self._choose_unused(project).container_id)
        is_new = container_id not in self._containers
        container = self._add(container_id, memory, project) if is_new else self._get(container_id)
        container.last_used = self._clock()
        return container, is_new

    def _add(self, container_id: str, memory: str, project: str) -> LiveContainer:
        if not CONTAINER_ID.fullmatch(container_id):
            raise SandboxError("a container id consists of letters, digits, - and _")
        if memory not in MEMORY_TIERS:
            raise SandboxError(f"memory must be one of {', '.join(MEMORY_TIERS)}")
        # A number, as a deleted container with the same id may still be closing.
        self._mounted += 1
        work = WorkFolder(self._folder / str(self._mounted))
        try:
            work.mount(self._options.disk_mib, self._options.max_files)
        except OSError as error:
            raise SandboxUnavailable(f"the work folder could not be made: {error}") from error
        memory_mib = min(MEMORY_TIERS[memory], self._options.memory_mib)
        container = LiveContainer(container_id, project, memory_mib, work, self._bwrap, self._options)
        self._containers[container_id] = container
        return container

    @asynccontextmanager
    async def _place_for_code(self, project: str) -> AsyncIterator[None]:
        """Hold a place among the containers that run code. Raises SandboxBusy."""
        limit = self._options.max_containers
        try:
            async with self._places.place(project):
                yield
        except ShareExceeded:
            share = limit - reserved_places(limit)
            raise SandboxBusy(
                f"a project may run code in {share} of {limit} containers (RESPONSES_SANDBOX_CONTAINERS), and none became free"
            ) from None

    def _choose_unused(self, project: str) -> LiveContainer:
        """Return the container to end for a new one of `project`: an own one, else one of the project with the most containers.

        Containers of projects with no more containers than `project` stay. Raises SandboxBusy.
        """
        counts = Counter(container.project for container in self._containers.values())
        unused = [container for container in self._containers.values() if not container.users]
        same_project = [one for one in unused if one.project == project and not one.pending_runs]
        others = [one for one in unused if one.project != project and counts[one.project] > counts[project]]
        if not same_project and not others:
            limit = self._options.max_containers
            raise SandboxBusy(f"{limit} containers are in use; the limit is RESPONSES_SANDBOX_CONTAINERS")
        return min(same_project or others, key=lambda one: (-counts[one.project], one.pending_runs > 0, one.last_used))

    def _get(self, container_id: str) -> LiveContainer:
        try:
            return self._containers[container_id]
        except KeyError:
            raise expired_error(container_id) from None

    def _status(self, container: LiveContainer) -> ContainerStatus:
        idle_s = 0.0 if container.users else self._clock() - container.last_used
        return ContainerStatus(
            container.container_id,
            container.memory_mib,
            container.is_running_code,
            round(idle_s, 3),
            round(max(self._options.idle_s - idle_s, 0.0), 3),
        )
