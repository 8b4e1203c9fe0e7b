"""Prompt of a round, as text."""

from __future__ import annotations

from typing import Any, Final

from responses_app.errors import NotFound
from responses_app.models import Response
from responses_app.runs import manager
from responses_app.store.log.rows.round_prompts import load_rounds
from responses_app.web.response.selection.prompt_rounds import missing_tokens, sent_rounds

# Tokens in an answer.
MAX_TOKENS: Final = 4_000


def read_prompt(row: Response, round_number: int, first_token: int) -> dict[str, Any]:
    """Return the counts of all rounds, and tokens of one round from `first_token` on. Raises NotFound if the prompt is not stored."""
    pairs = sent_rounds(row, load_rounds(row.pk))
    if not 1 <= round_number <= len(pairs):
        raise NotFound(
            "The prompt of this response isn't stored." if not pairs else f"The response has {len(pairs)} stored rounds."
        )
    rounds = [counts for _, counts in pairs]
    tokens = pairs[round_number - 1][0].prompt
    shown = list(tokens[first_token : first_token + MAX_TOKENS])
    served = manager.current().served.get(row.model)
    dialect = None if served is None else served.dialect
    following = first_token + len(shown)
    return {
        "rounds": [
            {"round": one.number, "tokens": one.input_tokens, "cached_tokens": one.cached_tokens, "sent": one.was_sent}
            for one in rounds
        ],
        "tokens_of_rounds_not_stored": missing_tokens(row, rounds),
        "round": round_number,
        "prompt_tokens": len(tokens),
        **({"token_ids": shown} if dialect is None else {"prompt_text": dialect.token_text(shown)}),
        "next_token": following if following < len(tokens) else None,
    }
