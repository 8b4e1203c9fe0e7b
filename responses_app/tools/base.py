"""Interface between a run and the tools that the server executes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from responses_app.dialects.citations.sources import Sources
from responses_app.protocol.deltas import Delta

Json: TypeAlias = Mapping[str, Any]


class ToolOffer(Protocol):
    """Server tools that the model may call in a round."""

    @property
    def functions(self) -> Sequence[Json]:
        """Function tools that the model is offered beside the tools of the request.

        A function with the key `recipient` is presented to gpt-oss as its own tool of this name (`dialects.toolset`).
        """
        ...

    def opening(self, function: str) -> Delta | None:
        """Return the delta that opens the item of a call of `function`; None if the client runs this function.

        An `McpApprovalRequest` means that the call needs an approval. An `OpenedWhenComplete`, as this and searches are, opens when
        the arguments are complete, and gets these. `Arguments` follow other openings; those of a `CodeCall` are the code, without the
        JSON of the model.
        """
        ...

    def tool_choice(self, choice: str | Json) -> str | Json:
        """Return `choice` with the functions of server tools in place of the tools. Raises UnsupportedInput for absent tools."""
        ...


@runtime_checkable
class CitingOffer(ToolOffer, Protocol):
    """Offer of tools whose results a text can cite."""

    @property
    def sources(self) -> Sources | None:
        """Sources that the model has read so far; None if the tools have no sources. The same items give the same sources."""
        ...


class ToolExecutor(Protocol):
    """Tools of a run. A call is an output item of a server-tool family, with the arguments.

    The methods get the call as the item that the events show, without an output. An open search call has two more keys: `arguments`
    is the text of the model, perhaps no valid JSON, and `function` of a web search is the name of the called function. `items` are
    the items of the context and of the output so far: a new owner of the run makes the same offer and the same openings from the
    same items.
    """

    async def prepare(self, items: Sequence[Json]) -> None:
        """Look up in the database what `items` refer to. Called before the first `offer`."""
        ...

    def offer(self, items: Sequence[Json]) -> ToolOffer:
        """Return the tools that `items` allow to offer."""
        ...

    def openings(self, items: Sequence[Json]) -> Sequence[Delta]:
        """Return the deltas that open the items to be run before the first generation: listings of tools, and approved calls."""
        ...

    def can_run(self, item: Json) -> bool:
        """Return True if `item` is a call of a tool of `self`, open or closed."""
        ...

    def counts(self, item: Json) -> bool:
        """Return True if `item` counts for the limits of calls."""
        ...

    def is_repeatable(self, call: Json) -> bool:
        """Return whether `call` may run a second time after a crash: the outcome of the first time is unknown."""
        ...

    async def run(self, call: Json, report: Callable[[Delta], None]) -> Delta:
        """Run `call` and return the delta that closes the item. `report` takes progress deltas for the item.

        A failure that the tool foresees is a result, too. Any other exception becomes a `failure`. Cancellation stops the tool.
        """
        ...

    def failure(self, call: Json, message: str) -> Delta:
        """Return the delta that closes the item of `call` as failed. The model reads `message`."""
        ...

    async def close(self) -> None:
        """Close the connections of the tools. Called at the end of the run; more calls do nothing."""
        ...
