"""Registry of item families, and the tables that other modules derive from the families."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from responses_app.protocol.content_parts import PartSpec
from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.items.base import Delta, ExtraEvents, Family, OutputItem
from responses_app.protocol.items.client_tools.client_call import APPLY_PATCH_CALL, COMPUTER_CALL, TOOL_SEARCH_CALL
from responses_app.protocol.items.client_tools.function_call import CUSTOM_TOOL_CALL, FUNCTION_CALL
from responses_app.protocol.items.client_tools.shell_call import LOCAL_SHELL_CALL, SHELL_CALL
from responses_app.protocol.items.compaction import COMPACTION
from responses_app.protocol.items.message import MESSAGE
from responses_app.protocol.items.reasoning import REASONING
from responses_app.protocol.items.server_tools.code_interpreter import CODE_INTERPRETER_CALL
from responses_app.protocol.items.server_tools.file_search import FILE_SEARCH_CALL
from responses_app.protocol.items.server_tools.mcp import MCP_APPROVAL_REQUEST, MCP_CALL, MCP_LIST_TOOLS
from responses_app.protocol.items.server_tools.web_search import WEB_SEARCH_CALL

# Items that this server stores with a request and never generates.
# Code that another server generated and ran.
PROGRAM: Final = Family(type="program", id_prefix="prog_", output=OutputItem("program_output", "po_"))
ADDITIONAL_TOOLS: Final = Family(type="additional_tools", id_prefix="at_")
CONFIGURATION_UPDATE: Final = Family(type="configuration_update", id_prefix="cfg_")
IMAGE_GENERATION_CALL: Final = Family(
    type="image_generation_call",
    id_prefix="ig_",
    tool="image_generation",
    runs_on_server=True,
    progress=("in_progress", "generating", "partial_image", "completed"),
    running_status="generating",
    final_statuses=frozenset({"completed", "failed"}),
)


class Registry(Mapping[str, Family]):
    """Item families by type. A registry never changes: `extended` returns another registry."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families: dict[str, Family] = {}
        self._openers: dict[tuple[type[Delta], str], Family] = {}
        self._of_event: dict[str, Family] = {}
        for family in families:
            self._add(family)
        # Item type -> prefix of its ids, with the items by which clients answer.
        self.id_prefixes: Final[Mapping[str, str]] = {
            **{family.type: family.id_prefix for family in self.values()},
            **{family.output.type: family.output.id_prefix for family in self.values() if family.output is not None},
        }
        # Type of the client's answer -> type of the answered call, for calls and answers with the same `call_id`.
        self.calls_by_output: Final[Mapping[str, str]] = {
            family.output.type: family.type
            for family in self.values()
            if family.output is not None and family.output.key == "call_id"
        }
        # Types of items that have no status, with the items by which clients answer.
        self.without_status: Final = frozenset(
            [family.type for family in self.values() if not family.final_statuses]
            + [family.output.type for family in self.values() if family.output is not None and not family.output.has_status]
        )
        # Name of the class -> class, for the deltas that an open item takes, so that logs can name them.
        self.item_deltas: Final[Mapping[str, type[Delta]]] = {
            delta.__name__: delta for family in self.values() for delta in (*family.steps, *family.results)
        }
        self.part_deltas: Final[Mapping[str, PartSpec]] = {
            name: part for family in self.values() for part in family.part_specs for name in (part.delta, *part.delta_aliases)
        }
        # Type of the event that opens a part -> key of the list that holds the part.
        self.part_lists: Final[Mapping[str, str]] = {
            part.added: part.list_key for family in self.values() for part in family.part_specs
        }
        # Type of the delta event -> key of the text in the item.
        self.argument_keys: Final[Mapping[str, str]] = {
            family.argument_stream.delta: family.argument_stream.key
            for family in self.values()
            if family.argument_stream is not None
        }
        # Type of the progress event -> status that the open item shows.
        self.running_statuses: Final[Mapping[str, str]] = {
            f"response.{family.type}.{family.running_status}": family.running_status
            for family in self.values()
            if family.running_status
        }
        self.extra_events: Final[Mapping[str, ExtraEvents]] = {
            name: family.extra_events
            for family in self.values()
            if family.extra_events is not None
            for name in family.extra_events.collect
        }

    def __getitem__(self, type_: str) -> Family:
        return self._families[type_]

    def __iter__(self) -> Iterator[str]:
        return iter(self._families)

    def __len__(self) -> int:
        return len(self._families)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def extended(self, *families: Family) -> Registry:
        """Return a registry with `families` besides the families of this registry."""
        return Registry([*self.values(), *families])

    def opened_by(self, delta: Delta) -> Family:
        """Return the family of the item that `delta` opens."""
        try:
            return self._openers[delta.__class__, getattr(delta, "kind", "")]
        except KeyError:
            raise ProtocolError(f"no item family is opened by {delta!r}") from None

    def of_event(self, event_type: str) -> Family | None:
        """Return the only family that has events of this type, or None."""
        return self._of_event.get(event_type)

    def _add(self, family: Family) -> None:
        prefixes = {other.id_prefix for other in self.values()}
        openers = dict.fromkeys(family.opened_by.items(), family)
        events = dict.fromkeys(family.event_types(), family)
        taken = family.type in self or family.id_prefix in prefixes
        if taken or openers.keys() & self._openers or events.keys() & self._of_event:
            raise ProtocolError(
                f"the family {family.type!r} has the type, the id prefix, a delta or an event of another family"
            )
        self._families[family.type] = family
        self._openers |= openers
        self._of_event |= events


FAMILIES: Final = Registry(
    [
        MESSAGE,
        REASONING,
        FUNCTION_CALL,
        CUSTOM_TOOL_CALL,
        SHELL_CALL,
        LOCAL_SHELL_CALL,
        APPLY_PATCH_CALL,
        TOOL_SEARCH_CALL,
        COMPUTER_CALL,
        MCP_LIST_TOOLS,
        MCP_CALL,
        MCP_APPROVAL_REQUEST,
        CODE_INTERPRETER_CALL,
        WEB_SEARCH_CALL,
        FILE_SEARCH_CALL,
        IMAGE_GENERATION_CALL,
        COMPACTION,
        PROGRAM,
        ADDITIONAL_TOOLS,
        CONFIGURATION_UPDATE,
    ]
)
