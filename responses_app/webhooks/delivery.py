"""Delivery of webhooks, in the background of every web process: claims due deliveries and sends a bounded number at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Final, TypeAlias

from django.conf import settings

from responses_app.models import WebhookDelivery
from responses_app.observability import events
from responses_app.store import webhooks
from responses_app.store.cluster.clock import shared_clock
from responses_app.store.db import call_in_thread
from responses_app.utils.shares import ProjectShares
from responses_app.webhooks.endpoints import encrypt_all_again
from responses_app.webhooks.sender import WebhookAnswer, WebhookEvent, send_event

logger = logging.getLogger("responses.webhooks")

Clock: TypeAlias = Callable[[], datetime]
POLL_S: Final = 1.0


async def deliver_webhooks(clock: Clock = shared_clock.now, poll_s: float = POLL_S) -> None:
    """Send the deliveries that are due until cancelled, RESPONSES_WEBHOOKS_PARALLEL at the same time.

    The last place is for a project without a delivery in work in this process, so that a slow endpoint stops no other project.
    """
    slots, ended = ProjectShares(settings.RESPONSES_WEBHOOKS_PARALLEL), asyncio.Event()
    has_old_keys = bool(settings.SECRET_KEY_FALLBACKS)
    async with asyncio.TaskGroup() as group:
        while True:
            try:
                if has_old_keys:
                    await call_in_thread(encrypt_all_again)
                    has_old_keys = False
                await _start_due(group, slots, ended, clock)
            except Exception as error:
                # The next look comes after the pause.
                logger.warning("webhooks to deliver cannot be read from the database: %s", type(error).__name__)
            with suppress(TimeoutError):
                async with asyncio.timeout(poll_s):
                    await ended.wait()
            ended.clear()


async def deliver_due(clock: Clock = shared_clock.now) -> int:
    """Send all deliveries that are due now, in order. Return the number of attempts."""
    count = 0
    while (row := await call_in_thread(webhooks.claim_next, clock())) is not None:
        await _deliver(row, clock)
        count += 1
    return count


async def _start_due(group: asyncio.TaskGroup, slots: ProjectShares, ended: asyncio.Event, clock: Clock) -> None:
    while slots.has_free_place:
        row = await call_in_thread(webhooks.claim_next, clock(), slots.full_projects())
        if row is None:
            return
        project = row.endpoint.project
        slots.take(project)
        task = group.create_task(_deliver(row, clock), name=f"webhook {row.uid}")
        task.add_done_callback(partial(_end, slots, project, ended))


def _end(slots: ProjectShares, project: str, ended: asyncio.Event, _task: asyncio.Task[None]) -> None:
    slots.release(project)
    ended.set()


def _log(row: WebhookDelivery, answer: WebhookAnswer) -> None:
    """Write a line about an attempt, as a warning if the endpoint has not accepted the event."""
    level = logging.INFO if answer.is_success else logging.WARNING
    names = row.uid, row.event_type, row.response_uid, row.endpoint.uid
    logger.log(level, "%s %s of %s to %s: attempt %d: %s", *names, row.attempts + 1, answer.status_code or answer.error)


async def _deliver(row: WebhookDelivery, clock: Clock) -> None:
    """Send a claimed delivery and note the outcome. A cancellation returns the delivery to the queue; an error lets the lease end."""
    event = WebhookEvent(row.uid, row.event_uid, row.event_type, row.response_uid, row.created_at)
    try:
        answer: WebhookAnswer = await send_event(row.endpoint, event, clock())
        await call_in_thread(webhooks.note_answer, row, answer.status_code, answer.error, clock())
        events.webhook_sent(is_success=answer.is_success)
        _log(row, answer)
    except asyncio.CancelledError:
        await asyncio.shield(call_in_thread(webhooks.release, row, clock()))
        raise
    except Exception:
        logger.exception("%s: the delivery", row.uid)
