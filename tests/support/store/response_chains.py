"""Chains of stored responses."""

from __future__ import annotations

import asyncio

from responses_app.store.log.records import Append, Ending
from responses_app.store.log.writer import LogWriter
from tests.support.store.log_records import NOW, USAGE, durable, frame, log


async def chain(recorder: LogWriter, *uids: str) -> None:
    """Store responses, each the continuation of the previous response."""
    keys: tuple[int, ...] = ()
    for uid in uids:
        one = log(uid, keys, thread=uids[0])
        ending = Ending("completed", NOW, [{"id": f"msg_{uid}_out", "type": "message"}], USAGE)
        await asyncio.gather(
            durable(recorder, Append(one, [frame(0)], opens=True)),
            durable(recorder, Append(one, [frame(1)], ending=ending)),
        )
        keys = (*keys, *[pk async for pk in one.row.items.order_by("pk").values_list("pk", flat=True)])
