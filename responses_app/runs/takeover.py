"""A response that nobody runs any more, or nobody yet, made a run of this process."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import orjson
from asgiref.sync import sync_to_async
from django.conf import settings

from responses_app.engines.border import Chunk, Request, Sampling
from responses_app.errors import ApiError, Unavailable
from responses_app.grammar.errors import GrammarError
from responses_app.grammar.pieces import Piece
from responses_app.grammar.writer import Writer
from responses_app.models import Lease, Response
from responses_app.runs import sealed
from responses_app.runs.again import Again, Differs, Told, again
from responses_app.runs.compaction import shortening
from responses_app.runs.generation import Generation
from responses_app.runs.ids import mint
from responses_app.runs.order import Order
from responses_app.runs.plan import Plan, replan
from responses_app.runs.run import Past, Run
from responses_app.runs.served import Served
from responses_app.store import history, leases, replay
from responses_app.store.history import Context
from responses_app.store.recorder import Recorder
from responses_app.store.records import Asked, Log
from responses_app.store.write import unpacked

logger = logging.getLogger("responses.takeover")

# A response that changes hands so often without a new event takes its process down with it, or cannot be made at all.
HOPELESS = 8
LOST = "The server that generated this response has gone, and it cannot be continued exactly: "


@dataclass(frozen=True, slots=True)
class Found:
    """What the store has of a response that is to go on."""

    row: Response
    lease: Lease
    order: Order
    before: Context
    own: Context
    prompt: list[int]
    log: Told

    @property
    def last(self) -> int:
        """The number of its last event."""
        return self.log[-1][0].number

    @property
    def events(self) -> list[dict[str, Any]]:
        """Its events."""
        return [orjson.loads(frame.data) for frame, _ in self.log]


async def take_over(pk: int, worker: UUID, models: Mapping[str, Served], recorder: Recorder) -> Run | None:
    """The run of a response whose lease this worker holds. None if it has ended. Raises Unavailable if it cannot be made now.

    One whose model is not among `models`, of which there is one at least, can only be ended.
    """
    found = await _found(pk)
    if found is None:
        return None
    known = models.get(found.lease.model)
    plan, broken = await _planned(found, known)
    served = known or next(iter(models.values()))
    stuck = 0 if found.lease.waiting else await sync_to_async(leases.note)(pk, found.last)
    if stuck is None:
        return None
    if stuck >= HOPELESS:
        broken = f"{LOST}it was tried {stuck} times."
    state, broken = _state(found, plan, broken)
    logger.info("%s: taken over at event %d, %d tokens", found.row.uid, found.last, len(state.heard))
    return _run(found, plan, served, state, broken, worker, recorder)


async def _found(pk: int) -> Found | None:
    loaded = await sync_to_async(leases.load)(pk)
    if loaded is None:
        return None
    row, lease, text, prompt = loaded
    before, own = await history.of_response(row)
    return Found(row, lease, Order.load(text, own.items), before, own, unpacked(prompt), await replay.live(pk))


async def _planned(found: Found, served: Served | None) -> tuple[Plan, str | None]:
    """The plan made again, with the prompt that was kept; or, and why, one that is of no use but to end the response."""
    row = found.row
    if served is None:
        return _no_plan(found), f"{LOST}nobody serves the model '{found.lease.model}' any more."
    try:
        plan = await replan(found.order, served, found.before, found.own, row.created_at.date())
    except Unavailable:
        raise
    except ApiError as error:
        logger.error("%s: cannot be asked again: %s", row.uid, error.message)
        return _no_plan(found), f"{LOST}{error.message}"
    return replace(plan, request=replace(plan.request, id=row.uid, prompt=found.prompt)), None


def _no_plan(found: Found) -> Plan:
    nothing = Request(found.row.uid, found.prompt, Sampling(max_tokens=1))
    return Plan(found.before, (), (), {}, {}, nothing, Deaf())


def _state(found: Found, plan: Plan, broken: str | None) -> tuple[Again, str | None]:
    """Where the log has come to; and why it cannot go on from there, if so."""
    try:
        if broken is None:
            return again(found.log, plan.listener, sealed.sealing(found.order)), None
    except (Differs, GrammarError) as error:
        logger.error("%s: not as it was: %s", found.row.uid, error)
        broken = f"{LOST}{error}."
    return Again(Writer.closing(found.events, mint), [], closed=False), broken


def _run(found: Found, plan: Plan, served: Served, state: Again, broken: str | None, worker: UUID, recorder: Recorder) -> Run:
    assert served.dialect is not None  # noqa: S101 - started
    lease = found.lease
    # One that has only waited was never asked for.
    take = lease.epoch - lease.waiting
    generation = Generation(
        served.engine, plan.request, served.dialect.spell, heard=state.heard, wait=settings.RESPONSES_ENGINE_WAIT, take=take
    )
    asked = Asked("", (), lease.model, lease.priority)
    return Run(
        state.writer,
        generation,
        plan.listener,
        recorder=recorder,
        log=Log(found.row, (), asked=asked, worker=worker, epoch=lease.epoch),
        prompt=plan.request.length or len(plan.request.prompt),
        patient=settings.RESPONSES_DURABILITY != "terminal",
        shorten=shortening(found.order, served, plan),
        aloud=found.order.aloud,
        speaks=found.order.generate,
        past=Past([frame for frame, _ in found.log], closed=state.closed, cancelled=lease.cancelled, broken=broken),
    )


class Deaf:
    """The listener of a run that only ends."""

    reasoning_tokens = 0
    done = True

    def hear(self, chunk: Chunk) -> list[Piece]:
        """Nothing."""
        del chunk
        return []

    def close(self) -> list[Piece]:
        """Nothing."""
        return []
