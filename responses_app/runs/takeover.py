"""A response that nobody runs any more, or nobody yet, made a run of this process."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import orjson
from asgiref.sync import sync_to_async
from django.conf import settings

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
from responses_app.store.recorder import Recorder
from responses_app.store.records import Asked, Log
from responses_app.store.write import unpacked

logger = logging.getLogger("responses.takeover")

# A response that changes hands so often without a new event takes its process down with it, or cannot be made at all.
HOPELESS = 8
LOST = "The server that generated this response has gone, and it cannot be continued exactly: "


async def take_over(pk: int, worker: UUID, find: Callable[[str], Served | None], recorder: Recorder) -> Run | None:
    """The run of a response whose lease this worker holds. None if it has ended. Raises ApiError if it cannot be made now."""
    found = await sync_to_async(leases.load)(pk)
    if found is None:
        return None
    row, lease, text, prompt = found
    log = await replay.live(pk)
    stuck = 0 if lease.waiting else await sync_to_async(leases.note)(pk, log[-1][0].number)
    before, own = await history.of_response(row)
    order = Order.load(text, own.items)
    served = find(lease.model)
    assert served is not None and served.dialect is not None  # noqa: PT018, S101 - only what is served is claimed
    plan = await replan(order, served, before, own, row.created_at.date())
    tokens = unpacked(prompt)
    plan = replace(plan, request=replace(plan.request, id=row.uid, prompt=tokens))
    state, broken = _state(log, plan, order)
    if stuck >= HOPELESS:
        broken = LOST + f"it was tried {stuck} times."
    logger.info("%s: taken over at event %d, %d tokens", row.uid, log[-1][0].number, len(state.heard))
    return _run(row, lease, log, plan, order, served, state, broken, worker, recorder)


def _state(log: Told, plan: Plan, order: Order) -> tuple[Again, str | None]:
    """Where the log has come to; and why it cannot go on from there, if so."""
    seal = sealed.sealing(order)
    try:
        return again(log, plan.listener, seal), None
    except Differs as error:
        logger.error("%s: not as it was: %s", plan.request.id, error)
        told = [orjson.loads(frame.data) for frame, _ in log]
        return Again(Writer.closing(told, mint), [], closed=False), f"{LOST}{error}."


def _run(
    row: Response,
    lease: Lease,
    log: Told,
    plan: Plan,
    order: Order,
    served: Served,
    state: Again,
    broken: str | None,
    worker: UUID,
    recorder: Recorder,
) -> Run:
    assert served.dialect is not None  # noqa: S101 - started
    generation = Generation(
        served.engine,
        plan.request,
        served.dialect.spell,
        heard=state.heard,
        wait=settings.RESPONSES_ENGINE_WAIT,
        # One that has only waited was never asked for.
        take=lease.epoch - lease.waiting,
    )
    asked = Asked("", (), lease.model, lease.priority)
    return Run(
        state.writer,
        generation,
        plan.listener,
        recorder=recorder,
        log=Log(row, (), asked=asked, worker=worker, epoch=lease.epoch),
        prompt=plan.request.length or len(plan.request.prompt),
        patient=settings.RESPONSES_DURABILITY == "visible",
        shorten=shortening(order, served, plan),
        past=Past([frame for frame, _ in log], closed=state.closed, cancelled=lease.cancelled, broken=broken),
    )
