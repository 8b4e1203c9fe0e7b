"""How long a response stands still when the process that runs it is killed or stopped."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from tests.chaos.system.database import STATE
from tests.chaos.system.system import System
from tests.chaos.waits import observe

POLL_S = 0.25
LIMIT = 600.0
# What is promised of a death, with another process up and the engine there.
PROMISED = 10.0


@dataclass(slots=True)
class Takeover:
    """Takeover of a response: seconds until another process held it, and until its next event."""

    uid: str
    how: str
    claimed: float | None = None
    moved: float | None = None
    # Whether the engine or the database was away meanwhile, or nobody else was there.
    hindered: bool = False


@dataclass(slots=True)
class Takeovers:
    """Takeovers of all faults; a task watches each fault."""

    system: System
    all: list[Takeover] = field(default_factory=list)
    hindered: bool = False
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def watch(self, held: list[tuple[int, str, int, int]], how: str) -> None:
        """Watch the responses `held` from now on."""
        if held:
            task = asyncio.create_task(self._watch(held, how))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def over(self) -> None:
        """Wait until all watched responses have gone on."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _watch(self, held: list[tuple[int, str, int, int]], how: str) -> None:
        began, takeovers = time.monotonic(), {pk: Takeover(uid, how) for pk, uid, _, _ in held}
        before = {pk: (epoch, last) for pk, _, epoch, last in held}
        self.all += takeovers.values()

        async def all_moved() -> bool:
            rows = await self.system.database.query(STATE, [list(takeovers)])
            age = time.monotonic() - began
            rows += [(pk, True, 0, False, None) for pk in takeovers.keys() - {row[0] for row in rows}]  # Deleted.
            for pk, ended, epoch, taken, last in rows:
                one, (was, reached) = takeovers[pk], before[pk]
                one.hindered |= self._hindered() and one.moved is None
                if one.claimed is None and (ended or (taken and epoch > was)):
                    one.claimed = age
                if one.moved is None and (ended or (last is not None and last > reached)):
                    one.moved = age
            return all(one.moved is not None and one.claimed is not None for one in takeovers.values())

        await observe(all_moved, bool, limit_s=LIMIT, poll_s=POLL_S)

    def _hindered(self) -> bool:
        return self.hindered or not self.system.engine_up.is_set() or not self.system.healthy


def summary(all_: list[Takeover]) -> list[tuple[str, str]]:
    """Return the lines of the table: one for each kind of fault, with and without an outage of the engine or the database."""
    rows = []
    for how in sorted({one.how for one in all_}):
        for hindered in (False, True):
            some = [one for one in all_ if one.how == how and one.hindered is hindered]
            if some:
                name = f"taken over after {how}" + (", engine or database away too" if hindered else "")
                held, moved = _spread([one.claimed for one in some]), _spread([one.moved for one in some])
                rows.append((name, f"{len(some)}: held again {held}; next event {moved}"))
    return rows


def _spread(times: list[float | None]) -> str:
    known = sorted(one for one in times if one is not None)
    if not known:
        return "never"
    lost = len(times) - len(known)
    return f"{known[len(known) // 2]:.1f} s, at most {known[-1]:.1f} s" + (f", never: {lost}" if lost else "")
