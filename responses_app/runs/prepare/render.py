"""Stage `render`: the dialect renders the turn to tokens, and builds the constraint of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from responses_app.dialects.base import Dialect, Turn
from responses_app.dialects.constraints.structural_tag import widen_white_space
from responses_app.dialects.text.budget import Budget, TooLong
from responses_app.engine_interface import Constraint
from responses_app.runs.prepare import long_work
from responses_app.runs.prepare.convert import ConvertedTurn
from responses_app.runs.prepare.prompt_context import PromptContext


@dataclass(frozen=True, slots=True)
class Rendering:
    """Rendered turn: the tokens, or TooLong in place of too many; and the constraint of the answer."""

    tokens: Sequence[int] | TooLong
    constraint: Constraint | None


async def render(context: PromptContext, converted: ConvertedTurn) -> Rendering:
    """Render the turn, in the thread where work of its size belongs. Raises InvalidRequest, ServiceUnavailable, RateLimited."""
    with context.map_errors(converted.turn.items):
        budget = Budget(context.served.engine.max_model_len - 1)
        rendering = partial(_render, context.dialect, converted.turn, budget)
        return await long_work.run_sized(context.create_request.project, converted.size, rendering, budget.stop)


def _render(dialect: Dialect, turn: Turn, budget: Budget) -> Rendering:
    """Render the prompt and the constraint. Raises UnsupportedInput, Stopped."""
    try:
        return Rendering(dialect.render(turn, budget), _constrain(dialect, turn))
    except TooLong as error:
        return Rendering(error, _constrain(dialect, turn))


def _constrain(dialect: Dialect, turn: Turn) -> Constraint | None:
    constraint = dialect.constrain(turn)
    if constraint is None or turn.json_whitespace != "any":
        return constraint
    return replace(constraint, value=widen_white_space(constraint.value))
