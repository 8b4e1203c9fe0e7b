"""Engine requests: prompt, constraint and sampling for a generation, and the parser of the answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import partial
from hashlib import sha256
from typing import Any

from django.conf import settings

from responses_app.dialects.base import Dialect, OutputParser, Turn, UnsupportedInput
from responses_app.dialects.constraints.structural_tag import widen_white_space
from responses_app.dialects.stop_sequences import with_stop_sequences
from responses_app.dialects.text.budget import Budget, TooLong
from responses_app.dialects.text.token_cache import TokenCache
from responses_app.engine_interface import Constraint, EngineUnavailable, GenerateRequest, Sampling
from responses_app.errors import InvalidRequest, RateLimited, ServiceUnavailable
from responses_app.images.decode_pool import DecoderBusy
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.models import ServedModel
from responses_app.runs.prepare import constraint_check, context, definitions, long_work
from responses_app.runs.prepare.files import documents
from responses_app.runs.prepare.long_work import WorkSize
from responses_app.runs.prepare.prompt import PromptRenderer, size_of
from responses_app.runs.prepare.truncation import Truncation
from responses_app.store.content.images import ImageBytes
from responses_app.tools.base import ToolOffer
from responses_app.tools.functions import as_functions
from responses_app.tools.functions.unknown_tools import UnknownToolFilter
from responses_app.tools.outputs.output_limit import limit_tool_output
from responses_app.tools.outputs.pictures import PromptPictures, choose_pictures

MIN_TOP_P = 1e-6
# Tokens that stay free for the answer when older items are dropped, unless the request has its own limit.
DEFAULT_ANSWER_TOKENS = 1024


async def build_engine_request(
    uid: str,
    create_request: CreateRequest,
    served: ServedModel,
    items: Sequence[Mapping[str, Any]],
    images_by_url: ImageBytes,
    own: Sequence[object] = (),
    *,
    offer: ToolOffer | None = None,
    measure: bool = False,
    today: date | None = None,
    memo: TokenCache | None = None,
    session: str = "",
    withholds: bool = False,
) -> tuple[GenerateRequest, OutputParser]:
    """Build the engine request `uid` for `items`, and the parser of the answer. Raises ApiError.

    `own` are the ids of the items of the client's request: errors blame these by their place in its input. `offer` has the
    tools that the server runs; with `withholds` the model is not offered these. `session` is the `session_id` of the chain.
    """
    assert served.dialect is not None  # noqa: S101 - started
    items = await _with_texts(create_request, items, images_by_url, own)
    pictures = await _pictures(create_request, served.dialect, items)
    turn = _turn(create_request, served, items, pictures, today or datetime.now(UTC).date(), memo)
    if offer is not None:
        turn = _with_server_tools(turn, offer, withholds=withholds)
    grammars = await definitions.convert(create_request.project, as_functions.custom_tool_formats(turn))
    size = size_of(turn)
    turn, origins = await long_work.apart(
        create_request.project, size is WorkSize.LONG, partial(as_functions.to_functions, turn, grammars.ebnf)
    )
    prompts = PromptRenderer(
        served.engine,
        served.dialect,
        {**images_by_url, **pictures.images},
        measure=measure or create_request.truncation == "auto",
        project=create_request.project,
    )
    try:
        with map_engine_down(served):
            turn, request = await _request(uid, create_request, served, served.dialect, turn, size, prompts)
    except UnsupportedInput as error:
        raise InvalidRequest(
            str(error), param=client_path(error.param, create_request, turn.items, own), code=error.code
        ) from error
    # Some parsers read the end of the prompt.
    make_parser = partial(served.dialect.parser_for, turn)
    parser = await long_work.apart(create_request.project, size is WorkSize.LONG, make_parser)
    names = frozenset(str(tool.get("name")) for tool in (*turn.tools, *(offer.functions if offer is not None else ())))
    mapped = as_functions.map_tool_calls(UnknownToolFilter(parser, names), origins)
    return replace(request, session=session), with_stop_sequences(mapped, create_request.stop)


async def _with_texts(
    create_request: CreateRequest, items: Sequence[Mapping[str, Any]], texts: ImageBytes, own: Sequence[object]
) -> Sequence[Mapping[str, Any]]:
    """Return the items with the texts of files. Raises InvalidRequest."""
    is_large = len(items) > long_work.LONG_ITEMS
    try:
        return await long_work.apart(create_request.project, is_large, partial(documents.with_texts, items, texts))
    except UnsupportedInput as error:
        param = client_path(error.param, create_request, items, own)
        raise InvalidRequest(str(error), param=param, code=error.code) from error


async def _pictures(create_request: CreateRequest, dialect: Dialect, items: Sequence[Mapping[str, Any]]) -> PromptPictures:
    """Choose the pictures in outputs of server tools that the prompt shows; none for a model without vision. Raises RateLimited."""
    if not dialect.supports_images:
        return PromptPictures()
    try:
        return await choose_pictures(create_request.project, items)
    except DecoderBusy as error:
        raise RateLimited(str(error)) from error


def _turn(
    create_request: CreateRequest,
    served: ServedModel,
    items: Sequence[Mapping[str, Any]],
    pictures: PromptPictures,
    today: date,
    memo: TokenCache | None,
) -> Turn:
    """Return the turn for `items`."""
    context_of = (create_request.reasoning or {}).get("context")
    max_bytes = settings.RESPONSES_TOOL_RESULT_PROMPT_BYTES
    items = [limit_tool_output(item, max_bytes, pictures.shown.get(item.get("id", ""))) for item in items]
    return Turn(
        items=context.drop_earlier_reasoning(items) if context_of == "current_turn" else items,
        today=today,
        instructions=create_request.instructions,
        tools=create_request.tools,
        tool_choice=create_request.tool_choice,
        parallel_tool_calls=create_request.parallel_tool_calls,
        effort=(create_request.reasoning or {}).get("effort"),
        all_reasoning=context_of == "all_turns",
        format=create_request.format,
        json_whitespace=served.defaults.json_whitespace or settings.RESPONSES_JSON_WHITESPACE,
        schema_limits=served.defaults.schema_limits,
        max_reasoning_length=served.defaults.max_reasoning_length,
        max_repetitions=served.defaults.max_repetitions,
        token_cache=memo,
    )


def _with_server_tools(turn: Turn, offer: ToolOffer, *, withholds: bool) -> Turn:
    """Return the turn with the tools of the server as functions. Raises InvalidRequest for absent tools and for a name used twice."""
    taken = as_functions.taken_name(as_functions.offered_names(turn), offer.functions)
    if taken is not None:
        message = (
            f"Invalid 'tools': the name '{taken}' belongs to a tool that the server runs for this request; rename your tool."
        )
        raise InvalidRequest(message, param="tools", code="invalid_value")
    try:
        choice = offer.tool_choice(turn.tool_choice)
    except UnsupportedInput as error:
        raise InvalidRequest(str(error), param=error.param, code=error.code) from error
    functions = offer.functions
    if withholds and not isinstance(choice, str) and "tools" in choice:
        names = {function["name"] for function in functions}
        choice = {**choice, "tools": [entry for entry in choice["tools"] if entry.get("name") not in names]}
    return replace(turn, tools=turn.tools if withholds else [*turn.tools, *functions], tool_choice=choice)


@contextmanager
def map_engine_down(served: ServedModel) -> Iterator[None]:
    """Raise ServiceUnavailable where the engine of `served` is down."""
    try:
        yield
    except EngineUnavailable as error:
        raise ServiceUnavailable(f"The engine of '{served.name}' does not answer. Try again in a moment.") from error


async def _request(
    uid: str,
    create_request: CreateRequest,
    served: ServedModel,
    dialect: Dialect,
    turn: Turn,
    size: WorkSize,
    prompts: PromptRenderer,
) -> tuple[Turn, GenerateRequest]:
    """Build the engine request; `size` is the size of the work on `turn`.

    Raises UnsupportedInput, and InvalidRequest for a prompt that does not fit.
    """
    limit = served.engine.max_model_len
    truncates, budget = create_request.truncation == "auto", Budget(limit - 1)
    rendering = partial(_render, dialect, turn, budget)
    tokens, constraint = await long_work.run_sized(create_request.project, size, rendering, budget.stop)
    if isinstance(tokens, TooLong) and not truncates:
        raise _exceeded(f"at least {tokens.min_tokens}", limit)
    constraint = await constraint_check.check_constraints(served.engine, create_request, constraint)
    prompt = None if isinstance(tokens, TooLong) else await prompts.measured(turn, tokens)
    if prompt is None or (truncates and not prompt.fits(limit - 1)):
        requested = served.max_output_tokens(create_request.max_output_tokens)
        wanted = min(requested or DEFAULT_ANSWER_TOKENS, limit // 4)
        try:
            turn, prompt = await Truncation(prompts, turn, limit - wanted, limit - 1).search()
        except TooLong as error:
            raise _exceeded(f"at least {error.min_tokens}", limit) from error
    prompt.check_pixels()
    free = limit - prompt.length
    if free < 1:
        raise _exceeded(str(prompt.length), limit)
    sampling = Sampling(
        max_tokens=min(free, served.max_output_tokens(create_request.max_output_tokens) or free),
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
        return dialect.render(turn, budget), _constrain(dialect, turn)
    except TooLong as error:
        return error, _constrain(dialect, turn)


def _constrain(dialect: Dialect, turn: Turn) -> Constraint | None:
    constraint = dialect.constrain(turn)
    if constraint is None or turn.json_whitespace != "any":
        return constraint
    return replace(constraint, value=widen_white_space(constraint.value))


def _exceeded(tokens: str, limit: int) -> InvalidRequest:
    return InvalidRequest(
        f"Your input exceeds the context window of this model. Please adjust your input and try again. ({tokens} tokens of {limit})",
        param="input",
        code="context_length_exceeded",
    )


def client_path(
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


def cache_salt(project: str, key: str | None) -> str | None:
    """Derive the salt of a project and its `prompt_cache_key`. None shares the cache with all projects, which a setting allows.

    Usage shows the cached part of a prompt. With a shared cache a project could find out the prompts of another one.
    """
    if not key and settings.RESPONSES_SHARED_PREFIX_CACHE:
        return None
    digest = sha256()
    for part in (project, key) if key else (project,):
        data = part.encode("utf-8", "surrogatepass")
        # The length makes the text of each pair of names unique: ("a/b", "c") is not ("a", "b/c").
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def session_id(create_request: CreateRequest, thread: str, uid: str) -> str:
    """Return the session of the response `uid`: equal for all turns of a chain, for engines that cache prefixes.

    `thread` is the id of the conversation, or of the first response of the chain. A `prompt_cache_key` comes before the chain,
    since the prefix cache is separate for each key, and other chains with the key may share a prefix.
    """
    if create_request.cache_key and create_request.conversation is None:
        return cache_salt(create_request.project, create_request.cache_key) or uid
    return thread or uid
