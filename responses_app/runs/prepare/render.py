"""Stages `render` and `limit`: the dialect renders the turn; the prompt is counted and shortened, the constraint checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from responses_app.dialects.base import Dialect, Turn
from responses_app.dialects.constraints.schema_cost import with_any_objects
from responses_app.dialects.constraints.structural_tag import widen_white_space
from responses_app.dialects.content import ImageReference
from responses_app.dialects.text.budget import Budget, TooLong
from responses_app.engine_interface import Constraint, GenerateRequest, Sampling
from responses_app.errors import InvalidRequest
from responses_app.runs.prepare.convert import ConvertedTurn, convert
from responses_app.runs.prepare.grammars import check_constraints
from responses_app.runs.prepare.length import skipping
from responses_app.runs.prepare.length.skipping import NeedsAllItems
from responses_app.runs.prepare.length.truncation import (
    PromptRenderer,
    RenderedPrompt,
    Truncation,
    TruncationPolicy,
    render_turn,
)
from responses_app.runs.prepare.prompt_context import PromptContext
from responses_app.validation.errors import invalid

MIN_TOP_P = 1e-6
# Bias of tokens that are never generated: the lowest of the API.
NEVER = -100.0
# Tokens that stay free for the answer when older items are dropped, unless the request has its own limit.
DEFAULT_ANSWER_TOKENS = 1024


@dataclass(frozen=True, slots=True)
class Rendering:
    """Rendered turn: the tokens and images, or TooLong in place of too many tokens; and the constraint of the answer."""

    converted: ConvertedTurn
    prompt: tuple[Sequence[int], Sequence[ImageReference]] | TooLong
    constraint: Constraint | None


def render(context: PromptContext, budget: Budget) -> Rendering:
    """Convert the items and tools of a prompt, and render the prompt and the constraint. Raises InvalidRequest, Stopped."""
    dialect, converted = context.dialect, convert(context)
    with context.map_errors(converted.turn.items):
        prompt: tuple[Sequence[int], Sequence[ImageReference]] | TooLong
        try:
            prompt = render_turn(dialect, converted.turn, budget)
        except TooLong as error:
            prompt = error
        return Rendering(converted, prompt, constrain(dialect, converted.turn))


def constrain(dialect: Dialect, turn: Turn) -> Constraint | None:
    """Build the constraint of the answer, None for any text. Raises UnsupportedInput."""
    constraint = dialect.constrain(turn)
    if constraint is None or turn.json_whitespace != "any":
        return constraint
    return replace(constraint, value=widen_white_space(constraint.value))


async def limit(context: PromptContext, rendering: Rendering) -> tuple[GenerateRequest, ConvertedTurn]:
    """Return the request of the engine, and the turn without the items that were dropped. Raises ApiError."""
    request, engine, converted = context.create_request, context.served.engine, rendering.converted
    with context.map_errors(converted.turn.items):
        if isinstance(rendering.prompt, TooLong) and not TruncationPolicy.of(request.truncation).drops:
            raise _exceeded(f"at least {rendering.prompt.min_tokens}", engine.max_model_len)
        loosely = partial(_constrain_loosely, context.dialect, converted.turn)
        constraint = await check_constraints(engine, request, rendering.constraint, loosely)
        turn, prompt = await _fit(context, rendering)
        prompt.check_pixels()
        return _engine_request(context, prompt, constraint), ConvertedTurn(turn, converted.origins)


def _constrain_loosely(dialect: Dialect, turn: Turn) -> Constraint | None:
    """Build the constraint with any object as the arguments of tools without `strict`; None if the turn has no such tools."""
    if all(tool.get("strict") for tool in turn.tools):
        return None
    return constrain(dialect, replace(turn, tools=with_any_objects(turn.tools)))


async def _fit(context: PromptContext, rendering: Rendering) -> tuple[Turn, RenderedPrompt]:
    """Count the prompt, and drop the oldest items of a prompt that is too long if the request allows that. Raises InvalidRequest."""
    request, served, most = context.create_request, context.served, context.served.engine.max_model_len
    policy, turn, rendered = TruncationPolicy.of(request.truncation), rendering.converted.turn, rendering.prompt
    prompts = PromptRenderer(
        served.engine, context.dialect, context.decoded, measure=context.measure or policy.drops, project=request.project
    )
    prompt = None if isinstance(rendered, TooLong) else await prompts.measured(*rendered)
    if prompt is not None and (not policy.drops or (policy.most_droppable is None and prompt.fits(most - 1))):
        if context.before.skipped is not None:
            raise NeedsAllItems
        return turn, prompt
    answer = min(served.max_output_tokens(request.max_output_tokens) or DEFAULT_ANSWER_TOKENS, most // 4)
    try:
        truncation = Truncation(prompts, turn, most - answer, policy, context.before.skipped)
        shortened = await truncation.search()
    except TooLong as error:
        raise _exceeded(f"at least {error.min_tokens}", most) from error
    if skipping.is_possible(context):
        skipping.remember(request.model, context.before.thread, truncation.skippable(context.before))
    return shortened


def _engine_request(context: PromptContext, prompt: RenderedPrompt, constraint: Constraint | None) -> GenerateRequest:
    """Return the request of the engine. Raises InvalidRequest for a prompt that leaves no token for the answer."""
    request, served, most = context.create_request, context.served, context.served.engine.max_model_len
    free = most - prompt.length
    if free < 1:
        raise _exceeded(str(prompt.length), most)
    sampling = Sampling(
        max_tokens=min(free, served.max_output_tokens(request.max_output_tokens) or free),
        temperature=served.temperature(request.temperature),
        # vLLM refuses zero; any number as small also leaves only the most likely token.
        top_p=served.top_p(request.top_p) or MIN_TOP_P,
        presence_penalty=request.presence_penalty,
        frequency_penalty=request.frequency_penalty,
        top_k=served.top_k(request.top_k),
        min_p=served.min_p(request.min_p),
        repetition_penalty=served.repetition_penalty(request.repetition_penalty),
        seed=request.seed,
        logprobs=request.logprobs,
        ignore_eos=request.ignore_eos,
        stop_token_ids=context.dialect.stop_token_ids,
        bias={
            **dict.fromkeys(served.defaults.suppress_tokens, NEVER),
            **_bias(request.logit_bias, context.dialect.vocabulary_size),
        },
    )
    return GenerateRequest(
        context.uid,
        prompt.tokens,
        sampling,
        constraint,
        priority=request.priority,
        cache_salt=request.cache_salt,
        images=prompt.images,
        length=prompt.length if prompt.measured else None,
        owner=request.project,
        session=context.session,
        request_id=request.request_id,
        traceparent=request.traceparent,
        tracestate=request.tracestate,
    )


def _bias(logit_bias: Mapping[str, float], vocabulary_size: int) -> dict[int, float]:
    """Return the bias by token id. Raises InvalidRequest for a token that the model does not have."""
    bias = {int(key): value for key, value in logit_bias.items()}
    if bias and (largest := max(bias)) >= vocabulary_size:
        problem = f"the model has no token {largest}. Its token ids are 0 to {vocabulary_size - 1}."
        raise invalid(("logit_bias",), problem)
    return bias


def _exceeded(tokens: str, limit: int) -> InvalidRequest:
    return InvalidRequest(
        f"Your input exceeds the context window of this model. Please adjust your input and try again. ({tokens} tokens of {limit})",
        param="input",
        code="context_length_exceeded",
    )
