"""From an order to what the engine is asked: the history gathered, the turn rendered and made to fit, the sampling set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

from responses_app.dialects import functions, parts
from responses_app.dialects.base import BadTurn, Dialect, Listener, Turn
from responses_app.dialects.budget import Budget, TooLong
from responses_app.dialects.memo import Memo
from responses_app.dialects.stops import stopped
from responses_app.engines.border import Constraint, EngineDown, Request, Sampling
from responses_app.errors import Invalid, Unavailable
from responses_app.runs import context, conversation, definitions, images, long_work, obeyed, sealed, shape
from responses_app.runs.ids import mint
from responses_app.runs.order import Order
from responses_app.runs.prompt import Prompts, is_long
from responses_app.runs.salt import cache_salt
from responses_app.runs.served import Served
from responses_app.runs.summary import QUESTION, Summing, asking
from responses_app.runs.truncation import Truncation
from responses_app.store.history import Context
from responses_app.store.records import Images

LEAST_TOP_P = 1e-6
# What is left free for the answer when older items are dropped, in tokens, unless the request names its own limit.
ROOM = 1024


@dataclass(frozen=True, slots=True)
class Plan:
    """What came before, the request's own items, all that are told, the engine's request, and who hears the answer.

    `images` are those of all items that are told, `fetched` those of the items to be kept that were fetched for it.
    """

    before: Context
    own: Sequence[dict[str, object]]
    items: Sequence[Mapping[str, Any]]
    images: Images
    fetched: Images
    request: Request
    listener: Listener


async def plan(
    order: Order, served: Served, before: Context | None = None, *, measure: bool = False, memo: Memo | None = None
) -> Plan:
    """Everything that a run needs to begin; nothing is kept. With `measure` the prompt's length is known. Raises ApiError.

    `before` is what the order continues, where that is known; else it is looked up. `memo` is what is known of its prompt.
    """
    await definitions.check(order.project, order.tools, order.input)
    if before is None:
        before = await _before(order)
    own = await context.resolve(order)
    is_large = len(before.items) + len(own) > long_work.LONG_ITEMS
    told, items, shown = await long_work.apart(order.project, is_large, partial(_prepared, order, before.items, own))
    uids = [one["id"] for one in own]
    with _away(served):
        _seen(told, served, items, shown, uids)
    new = await images.new(order.project, order.input, own)
    past = before.images if before.images is not None else await images.before(before.keys, before.items)
    seen = {**past, **new}
    request, listener = await ask(told, served, items, seen, uids, measure=measure, memo=memo)
    return Plan(before, own, items, seen, images.fetched({**_of(before.carried, past), **new}), request, _hearing(order, listener))


async def replan(order: Order, served: Served, before: Context, own: Context, today: date) -> Plan:
    """The plan of a response that was begun on that day, made again of what is kept; `own` are its input items. Raises ApiError."""
    told, items = _told_items(order, before.items, own.items)
    keys, everything = [*before.keys, *own.keys], [*before.items, *own.items]
    seen = await images.before(keys, everything)
    request, listener = await ask(told, served, items, seen, [one["id"] for one in own.items], today=today)
    return Plan(before, own.items, items, seen, {}, request, _hearing(order, listener))


def _prepared(
    order: Order, before: Sequence[dict[str, Any]], own: Sequence[dict[str, Any]]
) -> tuple[Order, Sequence[Mapping[str, Any]], Sequence[parts.Image]]:
    """As `_told_items`, with the images of the items. Raises Invalid."""
    context.distinct(before, own)
    told, items = _told_items(order, before, own)
    return told, items, list(parts.images(items))


def _told_items(
    order: Order, before: Sequence[dict[str, Any]], own: Sequence[dict[str, Any]]
) -> tuple[Order, Sequence[Mapping[str, Any]]]:
    """The items that are told to the model, and the order as they change it. Raises Invalid."""
    order, items = context.configured(order, sealed.opened(order, before, own))
    items = context.pair(context.folded(context.linked(items)))
    context.asks_for_json(order, items)
    return (asking(order), [*items, QUESTION]) if order.compacts else (order, items)


def _of(items: Sequence[Mapping[str, Any]], seen: Images) -> Images:
    """The images of these items."""
    uids = {item["id"] for item in items}
    return {key: data for key, data in seen.items() if key[0] in uids}


def _hearing(order: Order, listener: Listener) -> Listener:
    return Summing(listener, order.project) if order.compacts else listener


async def ask(
    order: Order,
    served: Served,
    items: Sequence[Mapping[str, Any]],
    seen: Images,
    own: Sequence[object] = (),
    *,
    measure: bool = False,
    today: date | None = None,
    memo: Memo | None = None,
) -> tuple[Request, Listener]:
    """The engine's request for these items, and who hears the answer; `own` are the ids of the request's own. Raises ApiError."""
    assert served.dialect is not None  # noqa: S101 - started
    context_of = (order.reasoning or {}).get("context")
    turn = Turn(
        items=context.this_turn(items) if context_of == "current_turn" else items,
        today=today or datetime.now(UTC).date(),
        instructions=order.instructions,
        tools=order.tools,
        tool_choice=order.tool_choice,
        parallel_tool_calls=order.parallel_tool_calls,
        effort=(order.reasoning or {}).get("effort"),
        all_reasoning=context_of == "all_turns",
        format=order.format,
        memo=memo,
    )
    grammars = await definitions.convert(order.project, functions.formats(turn))
    turn, origins = await long_work.apart(order.project, is_long(turn), partial(functions.plain, turn, grammars.ebnf))
    prompts = Prompts(served.engine, served.dialect, seen, measure=measure or order.truncation == "auto", project=order.project)
    try:
        with _away(served):
            turn, request = await _request(order, served, served.dialect, turn, prompts)
    except BadTurn as error:
        raise Invalid(str(error), param=_blame(error.param, order, turn.items, own), code=error.code) from error
    # Some dialects read the end of the prompt again.
    listening = partial(served.dialect.listen, turn)
    listener = await long_work.run(order.project, True, listening) if is_long(turn) else listening()
    return request, stopped(functions.heard(listener, origins), order.stop)


@contextmanager
def _away(served: Served) -> Iterator[None]:
    """An engine that has to be asked for something and is not there. Raises Unavailable."""
    try:
        yield
    except EngineDown as error:
        raise Unavailable(f"The engine of '{served.name}' does not answer. Try again in a moment.") from error


async def _before(order: Order) -> Context:
    """What the response continues: a conversation, another response, or nothing. Raises ApiError."""
    if order.conversation is not None:
        return await conversation.context(order.project, order.conversation)
    return await context.before(order)


def _seen(
    order: Order, served: Served, items: Sequence[Mapping[str, Any]], shown: Sequence[parts.Image], own: Sequence[object]
) -> None:
    """Nothing is decoded or fetched for a model that does not see. Raises Invalid for the newest image."""
    if shown and not served.sees:
        where = _blame(shown[-1].path, order, items, own) or "input"
        error = parts.blind(where)
        told = (
            str(error) if where.startswith("input") else f"This model takes text only, and what '{where}' continues has images."
        )
        raise Invalid(told, param=where, code=error.code)


async def _request(order: Order, served: Served, dialect: Dialect, turn: Turn, prompts: Prompts) -> tuple[Turn, Request]:
    """The engine's request. Raises BadTurn for what this model cannot be told, Invalid for a prompt that does not fit."""
    limit = served.engine.max_model_len
    truncates, budget = order.truncation == "auto", Budget(limit - 1)
    telling = partial(_told, dialect, turn, budget)
    tokens, constraint = await long_work.run(order.project, is_long(turn), telling, budget.stop)
    if isinstance(tokens, TooLong) and not truncates:
        raise _exceeded(f"at least {tokens.least}", limit)
    await obeyed.check(served.engine, order, constraint)
    prompt = None if isinstance(tokens, TooLong) else await prompts.measured(turn, tokens)
    if prompt is None or (truncates and not prompt.fits(limit - 1)):
        wanted = min(order.max_output_tokens or ROOM, limit // 4)
        try:
            turn, prompt = await Truncation(prompts, turn, limit - wanted, limit - 1).search()
        except TooLong as error:
            raise _exceeded(f"at least {error.least}", limit) from error
    prompt.check()
    room = limit - prompt.length
    if room < 1:
        raise _exceeded(str(prompt.length), limit)
    sampling = Sampling(
        max_tokens=min(room, order.max_output_tokens or room),
        temperature=shape.temperature(order, served),
        # Zero leaves the most likely token alone, and so does any number as small; vLLM takes no zero.
        top_p=shape.top_p(order, served) or LEAST_TOP_P,
        presence_penalty=order.presence_penalty,
        frequency_penalty=order.frequency_penalty,
        logprobs=order.logprobs,
        ignore_eos=order.ignore_eos,
        stop_token_ids=dialect.stop_token_ids,
    )
    return turn, Request(
        mint("resp_"),
        prompt.tokens,
        sampling,
        constraint,
        priority=order.priority,
        cache_salt=cache_salt(order.project, order.cache_key),
        images=prompt.images,
        length=prompt.length if prompt.measured else None,
        owner=order.project,
    )


def _told(dialect: Dialect, turn: Turn, budget: Budget) -> tuple[list[int] | TooLong, Constraint | None]:
    """Its tokens, if there are not too many, and what the answer must match. Raises BadTurn, Stopped."""
    try:
        return dialect.render(turn, budget), dialect.constrain(turn)
    except TooLong as error:
        return error, dialect.constrain(turn)


def _exceeded(tokens: str, limit: int) -> Invalid:
    return Invalid(
        f"Your input exceeds the context window of this model. Please adjust your input and try again. ({tokens} tokens of {limit})",
        param="input",
        code="context_length_exceeded",
    )


def _blame(param: str | None, order: Order, items: Sequence[Mapping[str, Any]], own: Sequence[object]) -> str | None:
    """A dialect counts the items that it was told; the client knows those of its request."""
    place = re.fullmatch(r"input\[(\d+)\](.*)", param or "", re.DOTALL)
    if place is None:
        return param
    uid = items[int(place[1])]["id"]
    if uid in own:
        return f"input[{own.index(uid)}]{place[2]}"
    return "conversation" if order.conversation else "previous_response_id"
