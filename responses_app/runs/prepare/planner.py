"""Planner: turns a request and its history into an engine request (prompt, constraint, sampling) and a parser."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

from responses_app.dialects import content
from responses_app.dialects.base import Dialect, OutputParser, Turn, UnsupportedInput
from responses_app.dialects.text.budget import Budget, TooLong
from responses_app.dialects.text.stop_sequences import with_stop_sequences
from responses_app.dialects.text.token_cache import TokenCache
from responses_app.dialects.tools import as_functions
from responses_app.engine_interface import Constraint, EngineUnavailable, GenerateRequest, Sampling
from responses_app.errors import InvalidRequest, ServiceUnavailable
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.models import ServedModel
from responses_app.runs.prepare import (
    constraint_check,
    context,
    conversation,
    definitions,
    encrypted_content,
    images,
    long_work,
)
from responses_app.runs.prepare.prompt import PromptRenderer, is_long
from responses_app.runs.prepare.salt import cache_salt
from responses_app.runs.prepare.summary import QUESTION, CompactionParser, summary_request
from responses_app.runs.prepare.truncation import Truncation
from responses_app.store.content.history import ConversationContext
from responses_app.store.log.records import ImageBytes

LEAST_TOP_P = 1e-6
# Tokens that stay free for the answer when older items are dropped, unless the request has its own limit.
ROOM = 1024


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """Prepared request: everything that a run needs to begin.

    `before` is the context that the request continues, `own` are its own items, `items` all items of the prompt. `images` are the
    images of all items of the prompt, `fetched` those that must be stored with the items. `listener` parses the answer.
    """

    before: ConversationContext
    own: Sequence[dict[str, object]]
    items: Sequence[Mapping[str, Any]]
    images: ImageBytes
    fetched: ImageBytes
    request: GenerateRequest
    listener: OutputParser
    # The request as items of the conversation change it, and the date that prompts name: for the prompts of further rounds.
    order: CreateRequest
    today: date


async def plan(
    uid: str,
    order: CreateRequest,
    served: ServedModel,
    before: ConversationContext | None = None,
    *,
    functions: Sequence[Mapping[str, Any]] = (),
    measure: bool = False,
    memo: TokenCache | None = None,
) -> PreparedRequest:
    """Prepare the response `uid`; nothing is stored. With `measure` the length of the prompt is known. Raises ApiError.

    `before` is the context that the request continues; None has it looked up. `functions` are offered to the
    model beside the tools of the request. `memo` caches the tokens of the context.
    """
    await definitions.check(order.project, order.tools, order.input)
    if before is None:
        before = await _before(order)
    own = await context.resolve_items(order)
    is_large = len(before.items) + len(own) > long_work.LONG_ITEMS
    told, items, shown = await long_work.apart(order.project, is_large, partial(_prepared, order, before.items, own))
    uids = [one["id"] for one in own]
    with _map_engine_down(served):
        _check_vision(told, served, items, shown, uids)
    new = await images.new_images(order.project, order.input, own)
    past = before.images if before.images is not None else await images.previous_images(before.keys, before.items)
    seen = {**past, **new}
    today = datetime.now(UTC).date()
    request, listener = await build_engine_request(
        uid, told, served, items, seen, uids, today=today, functions=functions, measure=measure, memo=memo
    )
    fetched = images.fetched({**_of(before.unsaved, past), **new})
    return PreparedRequest(before, own, items, seen, fetched, request, _hearing(order, listener), told, today)


async def replan(
    uid: str,
    order: CreateRequest,
    served: ServedModel,
    before: ConversationContext,
    own: ConversationContext,
    today: date,
    functions: Sequence[Mapping[str, Any]] = (),
) -> PreparedRequest:
    """Prepare the response `uid` again, from its stored input items `own` and the date when it began. Raises ApiError."""
    told, items = _items_for_model(order, before.items, own.items)
    keys, everything = [*before.keys, *own.keys], [*before.items, *own.items]
    seen = await images.previous_images(keys, everything)
    uids = [one["id"] for one in own.items]
    request, listener = await build_engine_request(uid, told, served, items, seen, uids, today=today, functions=functions)
    return PreparedRequest(before, own.items, items, seen, {}, request, _hearing(order, listener), told, today)


async def plan_round(
    uid: str,
    plan: PreparedRequest,
    served: ServedModel,
    output: Sequence[Mapping[str, Any]],
    spent: int,
    functions: Sequence[Mapping[str, Any]],
) -> tuple[GenerateRequest, OutputParser]:
    """Build the engine request `uid` and the parser of a further round. Raises ApiError.

    `output` are the items of the response so far, `spent` its output tokens so far. A tool choice that forces a call holds for
    the first round only: otherwise the model could never answer.
    """
    order, choice = plan.order, plan.order.tool_choice
    if isinstance(choice, str):
        free: str | Mapping[str, Any] = "none" if choice == "none" else "auto"
    else:
        free = {**choice, "mode": "auto"} if choice.get("type") == "allowed_tools" else "auto"
    left = None if order.max_output_tokens is None else order.max_output_tokens - spent
    order = replace(order, tool_choice=free, max_output_tokens=left)
    items = [*plan.items, *output]
    return await build_engine_request(uid, order, served, items, plan.images, today=plan.today, functions=functions)


def _prepared(
    order: CreateRequest, before: Sequence[dict[str, Any]], own: Sequence[dict[str, Any]]
) -> tuple[CreateRequest, Sequence[Mapping[str, Any]], Sequence[content.ImageReference]]:
    """Return the request and the items of the prompt as `_told_items`, and the images of the items. Raises Invalid."""
    context.check_unique(before, own)
    told, items = _items_for_model(order, before, own)
    return told, items, list(content.iter_images(items))


def _items_for_model(
    order: CreateRequest, before: Sequence[dict[str, Any]], own: Sequence[dict[str, Any]]
) -> tuple[CreateRequest, Sequence[Mapping[str, Any]]]:
    """Return the request as items of the conversation change it, and the items of the prompt. Raises Invalid."""
    order, items = context.apply_configuration(order, encrypted_content.decrypt_items(order, before, own))
    items = context.check_call_pairs(context.apply_compaction(context.assign_call_ids(items)))
    context.require_json_word(order, items)
    return (summary_request(order), [*items, QUESTION]) if order.compacts else (order, items)


def _of(items: Sequence[Mapping[str, Any]], seen: ImageBytes) -> ImageBytes:
    """Return the images of `items`."""
    uids = {item["id"] for item in items}
    return {key: data for key, data in seen.items() if key[0] in uids}


def _hearing(order: CreateRequest, listener: OutputParser) -> OutputParser:
    return CompactionParser(listener, order.project) if order.compacts else listener


async def build_engine_request(
    uid: str,
    order: CreateRequest,
    served: ServedModel,
    items: Sequence[Mapping[str, Any]],
    seen: ImageBytes,
    own: Sequence[object] = (),
    *,
    functions: Sequence[Mapping[str, Any]] = (),
    measure: bool = False,
    today: date | None = None,
    memo: TokenCache | None = None,
) -> tuple[GenerateRequest, OutputParser]:
    """Build the engine request `uid` for `items`, and the parser of the answer. Raises ApiError.

    `own` are the ids of the items of the client's request: errors blame these by their place in its input.
    """
    assert served.dialect is not None  # noqa: S101 - started
    context_of = (order.reasoning or {}).get("context")
    turn = Turn(
        items=context.drop_earlier_reasoning(items) if context_of == "current_turn" else items,
        today=today or datetime.now(UTC).date(),
        instructions=order.instructions,
        tools=[*order.tools, *functions] if functions else order.tools,
        tool_choice=order.tool_choice,
        parallel_tool_calls=order.parallel_tool_calls,
        effort=(order.reasoning or {}).get("effort"),
        all_reasoning=context_of == "all_turns",
        format=order.format,
        token_cache=memo,
    )
    grammars = await definitions.convert(order.project, as_functions.formats(turn))
    turn, origins = await long_work.apart(order.project, is_long(turn), partial(as_functions.to_functions, turn, grammars.ebnf))
    prompts = PromptRenderer(
        served.engine, served.dialect, seen, measure=measure or order.truncation == "auto", project=order.project
    )
    try:
        with _map_engine_down(served):
            turn, request = await _request(uid, order, served, served.dialect, turn, prompts)
    except UnsupportedInput as error:
        raise InvalidRequest(str(error), param=_client_path(error.param, order, turn.items, own), code=error.code) from error
    # Some parsers read the end of the prompt.
    listening = partial(served.dialect.parser_for, turn)
    listener = await long_work.run(order.project, True, listening) if is_long(turn) else listening()
    return request, with_stop_sequences(as_functions.map_tool_calls(listener, origins), order.stop)


@contextmanager
def _map_engine_down(served: ServedModel) -> Iterator[None]:
    """Raise Unavailable where the engine of `served` is down."""
    try:
        yield
    except EngineUnavailable as error:
        raise ServiceUnavailable(f"The engine of '{served.name}' does not answer. Try again in a moment.") from error


async def _before(order: CreateRequest) -> ConversationContext:
    """Return the context that the request continues: a conversation, another response, or nothing. Raises ApiError."""
    if order.conversation is not None:
        return await conversation.context(order.project, order.conversation)
    return await context.previous_context(order)


def _check_vision(
    order: CreateRequest,
    served: ServedModel,
    items: Sequence[Mapping[str, Any]],
    shown: Sequence[content.ImageReference],
    own: Sequence[object],
) -> None:
    """Refuse images for a model without vision, before any image is decoded. Raises Invalid for the newest image."""
    if shown and not served.supports_images:
        where = _client_path(shown[-1].path, order, items, own) or "input"
        error = content.no_vision(where)
        told = (
            str(error) if where.startswith("input") else f"This model takes text only, and what '{where}' continues has images."
        )
        raise InvalidRequest(told, param=where, code=error.code)


async def _request(
    uid: str, order: CreateRequest, served: ServedModel, dialect: Dialect, turn: Turn, prompts: PromptRenderer
) -> tuple[Turn, GenerateRequest]:
    """Build the engine request. Raises BadTurn for items that the model cannot take, Invalid for a prompt that does not fit."""
    limit = served.engine.max_model_len
    truncates, budget = order.truncation == "auto", Budget(limit - 1)
    telling = partial(_render, dialect, turn, budget)
    tokens, constraint = await long_work.run(order.project, is_long(turn), telling, budget.stop)
    if isinstance(tokens, TooLong) and not truncates:
        raise _exceeded(f"at least {tokens.min_tokens}", limit)
    await constraint_check.check_constraints(served.engine, order, constraint)
    prompt = None if isinstance(tokens, TooLong) else await prompts.measured(turn, tokens)
    if prompt is None or (truncates and not prompt.fits(limit - 1)):
        wanted = min(order.max_output_tokens or ROOM, limit // 4)
        try:
            turn, prompt = await Truncation(prompts, turn, limit - wanted, limit - 1).search()
        except TooLong as error:
            raise _exceeded(f"at least {error.min_tokens}", limit) from error
    prompt.check_pixels()
    room = limit - prompt.length
    if room < 1:
        raise _exceeded(str(prompt.length), limit)
    sampling = Sampling(
        max_tokens=min(room, order.max_output_tokens or room),
        temperature=served.temperature(order.temperature),
        # vLLM refuses zero; any number as small also leaves only the most likely token.
        top_p=served.top_p(order.top_p) or LEAST_TOP_P,
        presence_penalty=order.presence_penalty,
        frequency_penalty=order.frequency_penalty,
        logprobs=order.logprobs,
        ignore_eos=order.ignore_eos,
        stop_token_ids=dialect.stop_token_ids,
    )
    return turn, GenerateRequest(
        uid,
        prompt.tokens,
        sampling,
        constraint,
        priority=order.priority,
        cache_salt=cache_salt(order.project, order.cache_key),
        images=prompt.images,
        length=prompt.length if prompt.measured else None,
        owner=order.project,
    )


def _render(dialect: Dialect, turn: Turn, budget: Budget) -> tuple[list[int] | TooLong, Constraint | None]:
    """Render the prompt and the constraint; return TooLong in place of too many tokens. Raises BadTurn, Stopped."""
    try:
        return dialect.render(turn, budget), dialect.constrain(turn)
    except TooLong as error:
        return error, dialect.constrain(turn)


def _exceeded(tokens: str, limit: int) -> InvalidRequest:
    return InvalidRequest(
        f"Your input exceeds the context window of this model. Please adjust your input and try again. ({tokens} tokens of {limit})",
        param="input",
        code="context_length_exceeded",
    )


def _client_path(
    param: str | None, order: CreateRequest, items: Sequence[Mapping[str, Any]], own: Sequence[object]
) -> str | None:
    """Translate the path of an item in the prompt into the path of an item in the request of the client."""
    place = re.fullmatch(r"input\[(\d+)\](.*)", param or "", re.DOTALL)
    if place is None:
        return param
    uid = items[int(place[1])]["id"]
    if uid in own:
        return f"input[{own.index(uid)}]{place[2]}"
    return "conversation" if order.conversation else "previous_response_id"
