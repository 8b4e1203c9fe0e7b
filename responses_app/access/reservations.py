"""Reservation of tokens, spend and tool calls in the limits of a key and of the project."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

from asgiref.sync import sync_to_async
from django.conf import settings

from responses_app.errors import InsufficientQuota, RateLimited
from responses_app.models import ApiKey
from responses_app.models.limits.fields import NANO, Amount, CountedLimit
from responses_app.runs import manager
from responses_app.runs.prepare.planner import PreparedRequest
from responses_app.store.limits import counters, unstored
from responses_app.store.limits.counters import LimitLevel, LimitNeed
from responses_app.store.limits.prices import cost
from responses_app.store.limits.unstored import OpenCharges, UnstoredEnd
from responses_app.store.limits.usage import Spent

# Output tokens that are reserved where neither the request nor the model has a limit.
DEFAULT_OUTPUT_TOKENS: Final = 4096


def limit_reached(error: RateLimited, limit: str, scope: str) -> RateLimited:
    """Return the error of a request that a limit of the key or project refuses. Every such refusal passes here.

    `limit` is what is limited, as `tokens per minute`, and `scope` is `key` or `project`.
    """
    del limit, scope
    return error


class Reservation:
    """Reservation of a request, empty until `reserve`. `headers` are the rate limit headers of tokens."""

    def __init__(self, key: ApiKey) -> None:
        self.headers: dict[str, str] = {}
        self.open = OpenCharges()
        self._limits = key.all_counted_limits

    async def reserve(self, prepared: PreparedRequest) -> PreparedRequest:
        """Reserve the largest usage of the prepared request, and return the request with the reservation. Raises RateLimited."""
        needs = [need for limit in self._limits if (need := _need(limit, prepared)) is not None]
        if not needs:
            return prepared
        worker = await manager.current().worker()
        reserving = asyncio.ensure_future(sync_to_async(counters.reserve)(needs, worker))
        try:
            levels = await asyncio.shield(reserving)
        except asyncio.CancelledError:
            # The thread goes on, and the client has left.
            reserving.add_done_callback(partial(_settle_unused, needs))
            raise
        if refused := _refused(needs, levels):
            amount = {need.limit.counter: need.minimum for need in needs}
            # The limit that lasts longest, as the client can do nothing before its end.
            worst = max(refused, key=lambda level: level.wait_s(amount[level.limit.counter]))
            error = _refusal(worst, amount[worst.limit.counter], _prompt_amount(worst.limit, prepared))
            error.headers |= _headers([replace(level, granted=0) for level in levels])
            raise limit_reached(error, f"{worst.limit.amount} per {worst.limit.unit}", worst.limit.scope)
        # A second attempt at a summary reserves again.
        unstored.pending.add(UnstoredEnd(self.take(), Spent(), None))
        self.open = _charges(levels)
        self.headers = _headers(levels)
        calls = [level.granted for level in levels if level.limit.amount == Amount.CALLS]
        context = prepared.context
        request = replace(context.create_request, charges=self.open.charges, granted_calls=min(calls, default=None))
        return replace(prepared, context=replace(context, create_request=request), reservation=self.open.row)

    def take(self) -> OpenCharges:
        """Return the reservation, which another place settles from now on."""
        taken, self.open = self.open, OpenCharges()
        return taken


def _refused(needs: Sequence[LimitNeed], levels: Sequence[LimitLevel]) -> list[LimitLevel]:
    """Return the levels that have less than the request needs: then nothing is reserved."""
    return [level for level, need in zip(levels, needs, strict=True) if level.granted < need.minimum]


def _charges(levels: Sequence[LimitLevel]) -> OpenCharges:
    return OpenCharges([level.charge for level in levels], levels[0].row)


def _settle_unused(needs: Sequence[LimitNeed], reserving: asyncio.Future[list[LimitLevel]]) -> None:
    """Settle the reservation of a request whose client has left. Maintenance writes that at the latest."""
    if not reserving.cancelled() and reserving.exception() is None and not _refused(needs, levels := reserving.result()):
        unstored.pending.add(UnstoredEnd(_charges(levels), Spent(), None))


def _need(limit: CountedLimit, prepared: PreparedRequest) -> LimitNeed | None:
    """Return the amount that the request needs of a limit; None for nothing."""
    request, served = prepared.context.create_request, prepared.context.served
    if limit.amount == Amount.CALLS:
        return None if prepared.context.tools is None else LimitNeed(limit, request.max_server_calls, 1)
    prompt, output = _prompt_tokens(prepared), _output_tokens(prepared)
    if limit.amount == Amount.SPEND:
        nano = cost(served.name, prompt, 0, output)
        return LimitNeed(limit, nano, nano) if nano else None
    if request.max_output_tokens is None:
        # A default must not exceed a small limit.
        output = max(min(output, limit.most - prompt), 1)
    return LimitNeed(limit, prompt + output, prompt + output)


def _prompt_amount(limit: CountedLimit, prepared: PreparedRequest) -> int:
    """Return how much of a limit the prompt alone needs, whatever the output is."""
    if limit.amount == Amount.SPEND:
        return cost(prepared.context.served.name, _prompt_tokens(prepared), 0, 0)
    return 0 if limit.amount == Amount.CALLS else _prompt_tokens(prepared)


def _prompt_tokens(prepared: PreparedRequest) -> int:
    return prepared.request.length or len(prepared.request.prompt)


def _output_tokens(prepared: PreparedRequest) -> int:
    """Return the output tokens to reserve: the limit of the request, of the model, or DEFAULT_OUTPUT_TOKENS."""
    request, served = prepared.context.create_request, prepared.context.served
    if not request.generate:
        return 0
    limit = served.max_output_tokens(request.max_output_tokens) or DEFAULT_OUTPUT_TOKENS
    return min(limit, prepared.request.sampling.max_tokens)


def _refusal(level: LimitLevel, needed: int, prompt: int) -> RateLimited:
    """Return the error for a request that needs `needed` of a limit, of which the prompt alone needs `prompt`."""
    limit, wait_s = level.limit, level.wait_s(needed)
    wait = max(math.ceil(wait_s), 1)
    what = f"{limit.amount} per {limit.unit} of this {limit.scope}"
    numbers = f"Limit {_shown(limit, limit.most)}, Used {_shown(limit, level.used)}, Requested {_shown(limit, needed)}."
    refusal = RateLimited if limit.unit == "minute" else InsufficientQuota
    # Each API format has a name of its own for the limit of output tokens.
    if needed > limit.most:
        advice = "Shorten the input." if prompt >= limit.most else "Shorten the input or set a smaller limit of output tokens."
        message = f"Request too large for {what}: {numbers} {advice}"
        error = refusal(message, retry_after=wait)
        error.headers["x-should-retry"] = "false"
        return error
    if limit.unit == "minute":
        return RateLimited(f"Rate limit reached for {what}: {numbers} Try again in {wait_s:.2f}s.", retry_after=wait)
    end = datetime.fromtimestamp(round(datetime.now(UTC).timestamp() + wait_s), UTC)
    fits = limit.amount != Amount.CALLS and prompt < limit.most - level.used
    smaller = " A smaller limit of output tokens reserves less." if fits else ""
    return InsufficientQuota(
        f"You exceeded the quota of {what}: {numbers} It is renewed at {end:%Y-%m-%dT%H:%M:%SZ}.{smaller}", retry_after=wait
    )


def _shown(limit: CountedLimit, amount: int) -> str:
    """Return an amount for a message: of money with two to six decimals."""
    if limit.amount != Amount.SPEND:
        return str(amount)
    whole, _, decimals = f"{amount / NANO:.6f}".partition(".")
    return f"{whole}.{decimals.rstrip('0').ljust(2, '0')} {settings.RESPONSES_CURRENCY}"


def _headers(levels: Sequence[LimitLevel]) -> dict[str, str]:
    """Return OpenAI's headers for the tightest limit of tokens: of a minute, or without such a limit of a day."""
    tokens = [level for level in levels if level.limit.amount == Amount.TOKENS]
    tokens = [level for level in tokens if level.limit.unit == "minute"] or tokens
    if not tokens:
        return {}
    level = min(tokens, key=lambda level: level.remaining)
    return {
        "x-ratelimit-limit-tokens": str(level.limit.most),
        "x-ratelimit-remaining-tokens": str(level.remaining),
        "x-ratelimit-reset-tokens": f"{max(level.reset_s, 0.0):.2f}s",
    }
