"""Recipients of harmony messages: the names by which the model calls the tools of a turn."""

from __future__ import annotations

from responses_app.dialects.harmony.own_tools import RAW_RECIPIENTS, functions_of
from responses_app.dialects.toolset import Toolset, recipients
from responses_app.protocol.output_problems import CALL_WITHOUT_NAME, TOOL_NOT_ALLOWED, UNKNOWN_RECIPIENT

_FUNCTIONS = "functions."


class Recipients:
    """Recipients that stand for tools: declared functions, and the model's own tools."""

    def __init__(self, tools: Toolset) -> None:
        self.tools = tools
        self._own = recipients(tools.offered)
        self._names = frozenset(str(tool["name"]) for tool in functions_of(tools))

    def function_name(self, recipient: str | None) -> str | None:
        """Return the function named by the recipient; None for persons, formats and undeclared tools."""
        if recipient is None or recipient in self._names:
            return recipient
        # Models also write the names of their own tools as functions.
        name = recipient.removeprefix(_FUNCTIONS)
        if name in self._own:
            return self._own[name]
        return (name or None) if recipient.startswith(_FUNCTIONS) else None

    def is_raw(self, recipient: str | None) -> bool:
        """Return True for a tool of the model whose input is no JSON."""
        return recipient in self._own and recipient in RAW_RECIPIENTS

    def takes_json(self, recipient: str | None) -> bool:
        """Return True if a grammar constrains the arguments to JSON, as for declared functions and tools of the model."""
        return not self.is_raw(recipient) and (recipient in self._own or self.function_name(recipient) in self._names)

    def problem(self, recipient: str | None) -> tuple[str, str] | None:
        """Return type and text of the problem of a recipient, None without a problem."""
        name = self.function_name(recipient)
        if recipient is not None and name is None:
            return (CALL_WITHOUT_NAME if recipient == _FUNCTIONS else UNKNOWN_RECIPIENT), recipient
        return (TOOL_NOT_ALLOWED, name) if name is not None and not self.tools.allows(name) else None
