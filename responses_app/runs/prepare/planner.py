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

MIN_TOP_P = 1e-6
# Tokens that stay free for the answer when older items are dropped, unless the request has its own limit.
DEFAULT_ANSWER_TOKENS = 1024


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """Prepared request: everything that a run needs to begin.

    `before` is the context that the request continues, `own` are its own items, `items` all items of the prompt. `images` are the
    images of all items of the prompt, `fetched` those that must be stored with the items. `parser` parses the answer.
    """

    before: ConversationContext
    own: Sequence[dict[str, object]]
    items: Sequence[Mapping[str, Any]]
    images: ImageBytes
    fetched: ImageBytes
    request: GenerateRequest
    parser: OutputParser
    # The request as items of the conversation change it, and the date that prompts name: for the prompts of further rounds.
    create_request: CreateRequest
    today: date


async def plan(
    uid: str,
    create_request: CreateRequest,
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
    await definitions.check(create_request.project, create_request.tools, create_request.input)
    if before is None:
        before = await _before(create_request)
    own = await context.resolve_items(create_request)
    is_large = len(before.items) + len(own) > long_work.LONG_ITEMS
    effective, items, references = await long_work.apart(
        create_request.project, is_large, partial(_prepared, create_request, before.items, own)
    )
    uids = [one["id"] for one in own]
    with _map_engine_down(served):
        _check_vision(effective, served, items, references, uids)
    new = await images.new_images(create_request.project, create_request.input, own)
    past = before.images if before.images is not None else await images.previous_images(before.keys, before.items)
    images_by_url = {**past, **new}
    today = datetime.now(UTC).date()
    request, parser = await build_engine_request(
        uid, effective, served, items, images_by_url, uids, today=today, functions=functions, measure=measure, memo=memo
    )
    fetched = images.fetched({**_images_of(before.unsaved, past), **new})
    return PreparedRequest(
        before, own, items, images_by_url, fetched, request, _parser(create_request, parser), effective, today
    )


async def replan(
    uid: str,
    create_request: CreateRequest,
    served: ServedModel,
    before: ConversationContext,
    own: ConversationContext,
    today: date,
    functions: Sequence[Mapping[str, Any]] = (),
) -> PreparedRequest:
    """Prepare the response `uid` again, from its stored input items `own` and the date when it began. Raises ApiError."""
    effective, items = _items_for_model(create_request, before.items, own.items)
    keys, everything = [*before.keys, *own.keys], [*before.items, *own.items]
    images_by_url = await images.previous_images(keys, everything)
    uids = [one["id"] for one in own.items]
    request, parser = await build_engine_request(
        uid, effective, served, items, images_by_url, uids, today=today, functions=functions
    )
    return PreparedRequest(
        before, own.items, items, images_by_url, {}, request, _parser(create_request, parser), effective, today
    )


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
    create_request, choice = plan.create_request, plan.create_request.tool_choice
    if isinstance(choice, str):
        free: str | Mapping[str, Any] = "none" if choice == "none" else "auto"
    else:
        free = {**choice, "mode": "auto"} if choice.get("type") == "allowed_tools" else "auto"
    left = None if create_request.max_output_tokens is None else create_request.max_output_tokens - spent
    create_request = replace(create_request, tool_choice=free, max_output_tokens=left)
    items = [*plan.items, *output]
    return await build_engine_request(uid, create_request, served, items, plan.images, today=plan.today, functions=functions)


def _prepared(
    create_request: CreateRequest, before: Sequence[dict[str, Any]], own: Sequence[dict[str, Any]]
) -> tuple[CreateRequest, Sequence[Mapping[str, Any]], Sequence[content.ImageReference]]:
    """Return the request and the items of the prompt as `_items_for_model`, and the images of the items. Raises InvalidRequest."""
    context.check_unique(before, own)
    effective, items = _items_for_model(create_request, before, own)
    return effective, items, list(content.iter_images(items))


def _items_for_model(
    create_request: CreateRequest, before: Sequence[dict[str, Any]], own: Sequence[dict[str, Any]]
) -> tuple[CreateRequest, Sequence[Mapping[str, Any]]]:
    """Return the request as items of the conversation change it, and the items of the prompt. Raises InvalidRequest."""
    create_request, items = context.apply_configuration(
        create_request, encrypted_content.decrypt_items(create_request, before, own)
    )
    items = context.check_call_pairs(context.apply_compaction(context.assign_call_ids(items)))
    context.require_json_word(create_request, items)
    return (summary_request(create_request), [*items, QUESTION]) if create_request.compacts else (create_request, items)


def _images_of(items: Sequence[Mapping[str, Any]], images_by_url: ImageBytes) -> ImageBytes:
    """Return the images of `items`."""
    uids = {item["id"] for item in items}
    return {key: data for key, data in images_by_url.items() if key[0] in uids}


def _parser(create_request: CreateRequest, parser: OutputParser) -> OutputParser:
    return CompactionParser(parser, create_request.project) if create_request.compacts else parser


async def build_engine_request(
    uid: str,
    create_request: CreateRequest,
    served: ServedModel,
    items: Sequence[Mapping[str, Any]],
    images_by_url: ImageBytes,
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
    context_of = (create_request.reasoning or {}).get("context")
    turn = Turn(
        items=context.drop_earlier_reasoning(items) if context_of == "current_turn" else items,
        today=today or datetime.now(UTC).date(),
        instructions=create_request.instructions,
        tools=[*create_request.tools, *functions] if functions else create_request.tools,
        tool_choice=create_request.tool_choice,
        parallel_tool_calls=create_request.parallel_tool_calls,
        effort=(create_request.reasoning or {}).get("effort"),
        all_reasoning=context_of == "all_turns",
        format=create_request.format,
        token_cache=memo,
    )
    grammars = await definitions.convert(create_request.project, as_functions.custom_tool_formats(turn))
    turn, origins = await long_work.apart(
        create_request.project, is_long(turn), partial(as_functions.to_functions, turn, grammars.ebnf)
    )
    prompts = PromptRenderer(
        served.engine,
        served.dialect,
        images_by_url,
        measure=measure or create_request.truncation == "auto",
        project=create_request.project,
    )
    try:
        with _map_engine_down(served):
            turn, request = await _request(uid, create_request, served, served.dialect, turn, prompts)
    except UnsupportedInput as error:
        raise InvalidRequest(
            str(error), param=_client_path(error.param, create_request, turn.items, own), code=error.code
        ) from error
    # Some parsers read the end of the prompt.
    make_parser = partial(served.dialect.parser_for, turn)
    parser = await long_work.run(create_request.project, True, make_parser) if is_long(turn) else make_parser()
    return request, with_stop_sequences(as_functions.map_tool_calls(parser, origins), create_request.stop)


@contextmanager
def _map_engine_down(served: ServedModel) -> Iterator[None]:
    """Raise ServiceUnavailable where the engine of `served` is down."""
    try:
        yield
    except EngineUnavailable as error:
        raise ServiceUnavailable(f"The engine of '{served.name}' does not answer. Try again in a moment.") from error


async def _before(create_request: CreateRequest) -> ConversationContext:
    """Return the context that the request continues: a conversation, another response, or nothing. Raises ApiError."""
    if create_request.conversation is not None:
        return await conversation.context(create_request.project, create_request.conversation)
    return await context.previous_context(create_request)


def _check_vision(
    create_request: CreateRequest,
    served: ServedModel,
    items: Sequence[Mapping[str, Any]],
    references: Sequence[content.ImageReference],
    own: Sequence[object],
) -> None:
    """Refuse images for a model without vision, before any image is decoded. Raises InvalidRequest for the newest image."""
    if references and not served.supports_images:
        where = _client_path(references[-1].path, create_request, items, own) or "input"
        error = content.no_vision(where)
        effective = (
            str(error) if where.startswith("input") else f"This model takes text only, and what '{where}' continues has images."
        )
        raise InvalidRequest(effective, param=where, code=error.code)


async def _request(
    uid: str, create_request: CreateRequest, served: ServedModel, dialect: Dialect, turn: Turn, prompts: PromptRenderer
) -> tuple[Turn, GenerateRequest]:
    """Build the engine request. Raises UnsupportedInput, and InvalidRequest for a prompt that does not fit."""
    limit = served.engine.max_model_len
    truncates, budget = create_request.truncation == "auto", Budget(limit - 1)
    rendering = partial(_render, dialect, turn, budget)
    tokens, constraint = await long_work.run(create_request.project, is_long(turn), rendering, budget.stop)
    if isinstance(tokens, TooLong) and not truncates:
        raise _exceeded(f"at least {tokens.min_tokens}", limit)
    await constraint_check.check_constraints(served.engine, create_request, constraint)
    prompt = None if isinstance(tokens, TooLong) else await prompts.measured(turn, tokens)
    if prompt is None or (truncates and not prompt.fits(limit - 1)):
        wanted = min(create_request.max_output_tokens or DEFAULT_ANSWER_TOKENS, limit // 4)
        try:
            turn, prompt = await Truncation(prompts, turn, limit - wanted, limit - 1).search()
        except TooLong as error:
            raise _exceeded(f"at least {error.min_tokens}", limit) from error
    prompt.check_pixels()
    free = limit - prompt.length
    if free < 1:
        raise _exceeded(str(prompt.length), limit)
    sampling = Sampling(
        max_tokens=min(free, create_request.max_output_tokens or free),
        temperature=served.temperature(create_request.temperature),
        # vLLM refuses zero; any number as small also leaves only the most likely token.
        top_p=served.top_p(create_request.top_p) or MIN_TOP_P,
        presence_penalty=create_request.presence_penalty,
        frequency_penalty=create_request.frequency_penalty,
        logprobs=create_request.logprobs,
        ignore_eos=create_request.ignore_eos,
        stop_token_ids=dialect.stop_token_ids,
    )
    return turn, GenerateRequest(
        uid,
        prompt.tokens,
        sampling,
        constraint,
        priority=create_request.priority,
        cache_salt=cache_salt(create_request.project, create_request.cache_key),
        images=prompt.images,
        length=prompt.length if prompt.measured else None,
        owner=create_request.project,
    )


def _render(dialect: Dialect, turn: Turn, budget: Budget) -> tuple[list[int] | TooLong, Constraint | None]:
    """Render the prompt and the constraint; return TooLong in place of too many tokens. Raises UnsupportedInput, Stopped."""
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
    param: str | None, create_request: CreateRequest, items: Sequence[Mapping[str, Any]], own: Sequence[object]
) -> str | None:
    """Translate the path of an item in the prompt into the path of an item in the request of the client."""
    place = re.fullmatch(r"input\[(\d+)\](.*)", param or "", re.DOTALL)
    if place is None:
        return param
    uid = items[int(place[1])]["id"]
    if uid in own:
        return f"input[{own.index(uid)}]{place[2]}"
    return "conversation" if create_request.conversation else "previous_response_id"
