"""Long conversations in short: a model's own summary takes the place of what it and its tools have said (responses-api.md §3.6)."""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from responses_app.engines.border import BadPrompt, EngineError
from responses_app.errors import Failed, Invalid
from responses_app.grammar.pieces import Piece, Text
from responses_app.runs.ids import mint
from responses_app.runs.order import Order
from responses_app.runs.plan import Plan, plan
from responses_app.runs.sealed import seal_summary
from responses_app.runs.served import Served
from responses_app.runs.shape import usage
from responses_app.runs.tally import Tally

ASKED = (
    "Summarize our conversation so far, for yourself: you will be given your summary in place of what you have said and of what your "
    "tools have returned. Keep every fact, name, number, decision and open task. Answer with the summary alone."
)
# In tokens; a summary has no use if it is as long as what it stands for.
LONGEST = 4096


async def compact(order: Order, served: Served) -> dict[str, Any]:
    """The `response.compaction` object for the order's context. Nothing is kept. Raises ApiError."""
    asked = await plan(replace(order, input=[*order.input, _question()], max_output_tokens=LONGEST), served)
    tally = Tally(prompt=len(asked.request.prompt))
    try:
        summary = await _summary(asked, served, tally)
    except BadPrompt as error:
        raise Invalid(str(error)) from error
    except EngineError as error:
        raise Failed(f"The engine failed: {error}") from error
    if not summary:
        raise Failed("The model has not written a summary.")
    token = seal_summary(order.project, summary)
    # The last of them is our question.
    said = [item for item in asked.items if item["type"] == "message" and item["role"] == "user"][:-1]
    return {
        "id": asked.request.id,
        "object": "response.compaction",
        "created_at": int(time.time()),
        "output": [*said, {"id": mint("cmp_"), "type": "compaction", "encrypted_content": token}],
        "usage": usage(tally.prompt, tally.cached, tally.output, asked.listener.reasoning_tokens),
    }


async def _summary(asked: Plan, served: Served, tally: Tally) -> str:
    """What the model says, its reasoning left out. Raises EngineError."""
    said: list[Piece] = []
    async with aclosing(served.engine.generate(asked.request)) as chunks:
        async for chunk in chunks:
            tally.count(chunk)
            said += asked.listener.hear(chunk)
            if asked.listener.done or chunk.finish is not None:
                break
    said += asked.listener.close()
    return "".join(piece.text for piece in said if isinstance(piece, Text)).strip()


def _question() -> dict[str, Any]:
    return {"type": "message", "role": "user", "status": "completed", "content": [{"type": "input_text", "text": ASKED}]}
