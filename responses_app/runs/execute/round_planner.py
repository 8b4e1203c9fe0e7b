"""Planner of the rounds of a run: requests for the engine, and parsers of the output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
from django.conf import settings

from responses_app.dialects.base import OutputParser
from responses_app.engine_interface import GenerateRequest
from responses_app.errors import InvalidRequest
from responses_app.protocol.deltas import Delta, McpTools
from responses_app.protocol.items.base import Item
from responses_app.runs.execute.generation import Generation
from responses_app.runs.execute.rounds import Round, ToolLoop
from responses_app.runs.prepare.planner import PreparedRequest, plan_prompt
from responses_app.runs.prepare.prompt_context import PromptContext
from responses_app.runs.server_tools.call_limit import CallLimit
from responses_app.runs.server_tools.call_parser import OpeningParser
from responses_app.store.log.token_log import RoundEnd
from responses_app.tools.base import ToolOffer
from responses_app.tools.limits import ToolLimits


class RoundPlanner:
    """Rounds of a run: engine, prompts and parsers. `owner_epoch` distinguishes the processes that run the response in turn."""

    def __init__(self, prepared: PreparedRequest, owner_epoch: int = 1) -> None:
        self.prepared, self._context, self._owner_epoch = prepared, prepared.context, owner_epoch
        self._tools = self._context.tools
        self._limit = None if self._tools is None else CallLimit(self._tools, self._context.create_request.max_server_calls)

    def create(
        self,
        request: GenerateRequest,
        parser: OutputParser,
        tokens: Sequence[int] = (),
        end: RoundEnd | None = None,
        *,
        number: int = 0,
    ) -> Round:
        """Create the round `number`. `tokens` are the tokens, and `end` the end, that an earlier owner has saved."""
        generation = Generation(
            self._context.served.engine,
            request if settings.RESPONSES_COALESCE_DELTAS else replace(request, may_join=False),
            self._context.dialect.token_text,
            tokens=tokens,
            wait=settings.RESPONSES_ENGINE_WAIT,
            owner_epoch=self._owner_epoch,
            # A client that is answered 429 can repeat the request only if nothing has happened for it yet.
            is_patient=number > 0 or self._owner_epoch > 1 or self._context.create_request.background,
        )
        if number == 0 and self._prepares:
            return Round(generation, parser, 0, end, generates=False)
        return Round(generation, parser, request.length or len(request.prompt), end)

    async def plan(
        self, number: int, output: Sequence[Item], spent: int, *, measure: bool = False
    ) -> tuple[GenerateRequest, OutputParser]:
        """Build request and parser of the round `number`, which is not the first round. Raises ApiError.

        `output` are the items of the response so far, `spent` its output tokens so far. With `measure` the length of the prompt is known.
        """
        if self._context.create_request.requires_listings:
            _check_listings(output)
        offer = None if self._tools is None else self._tools.offer([*self._context.items, *output])
        left = None if self._limit is None else self._limit.left(output)
        if number >= settings.RESPONSES_TOOL_ROUNDS + self._prepares:
            # The model has called tools in every round so far: the last round is for the answer.
            left = 0
        if self._limit is not None and left == 0:
            output = self._limit.with_note(output)
        choice = self._context.create_request.tool_choice
        if not (number == 1 and self._prepares and left != 0):
            # A forced call holds for the first round with a generation only: otherwise the model could never answer.
            choice = _free_choice(choice)
        context = self._next_context(f"r{number}", output, spent, offer, choice)
        try:
            prepared = await plan_prompt(replace(context, calls_left=left, withholds_tools=left == 0, measure=measure))
        except InvalidRequest as error:
            raise _explained(error, output) from error
        return prepared.request, prepared.parser

    def first(self) -> tuple[GenerateRequest, OutputParser]:
        """Return request and parser of the first round. A plan with openings begins with a round that generates nothing."""
        if self._prepares:
            openings = self._context.openings
            return self.prepared.request, OpeningParser(openings if self._limit is None else self._limit.cut_openings(openings))
        return self.prepared.request, self.prepared.parser

    async def next(self, number: int, output: Sequence[Item], spent: int) -> Round:
        """Create the round `number`, which is not the first round. Raises ApiError."""
        return self.create(*await self.plan(number, output, spent), number=number)

    def loop(self) -> ToolLoop | None:
        """Return the tool loop of the run; None without tools."""
        if self._tools is None:
            return None
        create_request = self._context.create_request
        return ToolLoop(
            self._tools,
            self.next,
            ToolLimits.from_settings(),
            self._prepares,
            create_request.max_output_tokens,
            create_request.include,
            self.check_listing,
        )

    async def check_listing(self, item: Item, result: Delta) -> Delta:
        """Return a failed listing in place of a listing whose tools the model's context has no place for."""
        limit = self._context.served.engine.max_model_len
        # Only a list with more bytes than the context has tokens can be too long by itself.
        if not isinstance(result, McpTools) or self._tools is None or len(orjson.dumps(result.tools)) < limit:
            return result
        offer = self._tools.offer([*self._context.items, {**item, "tools": result.tools}])
        try:
            await plan_prompt(self._next_context("listing", (), 0, offer, "auto"))
        except InvalidRequest as error:
            if error.code != "context_length_exceeded":
                return result
            return McpTools(error=f"The tools of the MCP server do not fit the context of the model, which has {limit} tokens.")
        return result

    def _next_context(
        self, name: str, output: Sequence[Item], spent: int, offer: ToolOffer | None, choice: str | Mapping[str, Any]
    ) -> PromptContext:
        """Return the context of a further round: the items of the first round and the output, of `spent` tokens."""
        request = self._context.create_request
        left = None if request.max_output_tokens is None else request.max_output_tokens - spent
        return replace(
            self._context,
            uid=f"{self._context.uid}-{name}",
            create_request=replace(request, tool_choice=choice, max_output_tokens=left),
            # Errors blame what came before: the input of the client has been accepted.
            input_items=(),
            items=[*self._context.items, *output],
            offer=offer,
            openings=(),
            calls_left=None,
            measure=False,
            token_cache=None,
        )

    @property
    def _prepares(self) -> bool:
        return bool(self._context.openings)


def _free_choice(choice: str | Mapping[str, Any]) -> str | Mapping[str, Any]:
    """Return the tool choice without a forced call."""
    if isinstance(choice, str):
        return "none" if choice == "none" else "auto"
    return {**choice, "mode": "auto"} if choice.get("type") == "allowed_tools" else "auto"


def _explained(error: InvalidRequest, output: Sequence[Item]) -> InvalidRequest:
    """Return `error`; for a choice without tools with the failed listings, which a client without a stream does not see."""
    listings = [item for item in output if item["type"] == "mcp_list_tools" and item.get("error")]
    if error.param != "tool_choice" or not listings:
        return error
    reasons = [f"Listing of '{item['server_label']}': {item['error']}" for item in listings]
    return InvalidRequest(" ".join([error.message, *reasons]), param=error.param, code=error.code)


def _check_listings(output: Sequence[Item]) -> None:
    """Raise InvalidRequest, with the words of Anthropic's API, for a failed list of tools."""
    for item in output:
        if item["type"] == "mcp_list_tools" and item.get("error"):
            label, error = item["server_label"], item["error"]
            raise InvalidRequest(f"Connection error while communicating with MCP server '{label}': {error}")
