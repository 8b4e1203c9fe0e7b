"""Create request: a validated request without HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from hashlib import sha256
from typing import Any, Final

import orjson
from django.conf import settings

from responses_app.models import ApiFormat
from responses_app.store.limits.counters import LimitCharge

# A `compact_threshold` that the server chooses: a share of the context window of the model.
OWN_THRESHOLD: Final = 0


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """Create request after validation. Items and tools are in wire form; `echo` holds the fields that the response repeats."""

    project: str
    key: int | None
    model: str
    input: Sequence[dict[str, Any]]
    instructions: str | None = None
    tools: Sequence[Mapping[str, Any]] = ()
    tool_choice: str | Mapping[str, Any] = "auto"
    parallel_tool_calls: bool = True
    reasoning: Mapping[str, Any] | None = None
    format: Mapping[str, Any] = field(default_factory=lambda: {"type": "text"})
    temperature: float | None = None
    top_p: float | None = None
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    ignore_eos: bool = False
    seed: int | None = None
    # Number of the most likely tokens to choose from; 0 for all, None for the default of the model.
    top_k: int | None = None
    # Least probability of a token, as a share of that of the most likely token; None for the default of the model.
    min_p: float | None = None
    # Divides the logits of tokens of the prompt and of the output; None for the default of the model.
    repetition_penalty: float | None = None
    # Numbers that are added to the logits of tokens, by token id in digits.
    logit_bias: Mapping[str, float] = field(default_factory=dict)
    # Stop sequences: the answer ends before the first of these.
    stop: Sequence[str] = ()
    max_output_tokens: int | None = None
    # `LimitName` of `max_output_tokens`; empty if the client has set that, or if there is none.
    output_limit: str = ""
    # Running time in seconds after which the response ends incomplete; None for no limit.
    max_run_seconds: int | None = None
    run_limit: str = ""
    store: bool = True
    # Hash of the request, with which a client that sends it again finds the response; empty if that is not wanted.
    fingerprint: str = ""
    # API format of the request, as in `models.ApiFormat`; empty for Responses.
    api_format: str = ""
    # JSON of the body as the client of another API format has sent it, for the pages, without credentials and shortened.
    client_body: str = ""
    stream: bool = False
    background: bool = False
    obfuscate: bool = False
    # Whether a failure has an `error` event before the terminal one. On a WebSocket that would be a second answer.
    emit_error_event: bool = True
    # Whether the engine generates; if not, it only reads the prompt into its cache.
    generate: bool = True
    # Smaller numbers are served sooner.
    priority: int = 0
    cache_key: str | None = None
    # `auto`, `disabled`, or an object `retention_ratio` (`schemas.create_response.RetentionRatio`).
    truncation: str | Mapping[str, Any] = "disabled"
    # Length of the context in tokens from which a response ends with a compaction; None for never.
    compact_threshold: int | None = None
    # Whether the response is only a compaction of the context.
    compacts: bool = False
    # Number of alternatives for every token of a message; None for no log-probabilities.
    logprobs: int | None = None
    # The `x-request-id` of the request.
    request_id: str = ""
    # The trace of the request (W3C Trace Context), which engines and MCP servers continue; empty without a trace.
    traceparent: str = ""
    tracestate: str = ""
    previous_response_id: str | None = None
    # Response with which the prompt is compared for `prompt_cache_diagnostics`.
    comparison_response_id: str | None = None
    conversation: str | None = None
    # Primary key of the person who sent the request from a page; None for a request with an API key.
    user: int | None = None
    # The response whose request is run again, and whether its tool results stand in for running the server tools.
    rerun_of: str | None = None
    uses_recorded_results: bool = False
    # Whether each call of a server tool needs an approval.
    asks_before_calls: bool = False
    include: frozenset[str] = frozenset()
    metadata: Mapping[str, str] = field(default_factory=dict)
    echo: Mapping[str, Any] = field(default_factory=dict)
    # Reservations in the counters of limits, and the calls of server tools that a limit leaves; None for any number.
    charges: Sequence[LimitCharge] = ()
    granted_calls: int | None = None
    # HTTP headers for MCP servers by label, with credentials: never stored in clear and never repeated.
    secrets: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)

    @property
    def mcp_tools(self) -> Mapping[str, Mapping[str, Any]]:
        """MCP tools of the request by label; none if RESPONSES_INACTIVE_TOOLS names `mcp`."""
        if "mcp" in settings.RESPONSES_INACTIVE_TOOLS:
            return {}
        return {tool["server_label"]: tool for tool in self.tools if tool["type"] == "mcp"}

    @property
    def has_log(self) -> bool:
        """Return whether the response has a log: also if it is not stored, where it can be polled or repeated for some minutes."""
        return self.store or self.background or bool(self.api_format)

    @property
    def requires_listings(self) -> bool:
        """Return whether a failed list of MCP tools fails the response: a message of Anthropic's API cannot show `mcp_list_tools`."""
        return self.api_format == ApiFormat.MESSAGES

    @property
    def max_server_calls(self) -> int:
        """Calls of server tools that the response may have: `max_tool_calls`, or the setting if that is less."""
        most: int = settings.RESPONSES_TOOL_CALLS
        granted = most if self.granted_calls is None else self.granted_calls
        return min(most, granted, self.echo.get("max_tool_calls") or most)

    @property
    def cache_salt(self) -> str | None:
        """Salt of the prefix cache for the project and the `prompt_cache_key`; None if a setting shares the cache with all projects.

        Usage shows the cached part of a prompt. With a shared cache a project could find out the prompts of another one.
        """
        if not self.cache_key and settings.RESPONSES_SHARED_PREFIX_CACHE:
            return None
        digest = sha256()
        for part in (self.project, self.cache_key) if self.cache_key else (self.project,):
            data = part.encode("utf-8", "surrogatepass")
            # The length makes the text of each pair of names unique: ("a/b", "c") is not ("a", "b/c").
            digest.update(len(data).to_bytes(8, "big") + data)
        return digest.hexdigest()

    def dump(self) -> str:
        """Return the request as JSON without what is stored elsewhere (`STORED_ELSEWHERE`), and fields with their default."""
        values = {
            name: value for name, default in _dumped_fields().items() if not _equals(value := getattr(self, name), default)
        }
        return orjson.dumps(values, default=_listed).decode()

    @classmethod
    def load(
        cls, text: str, input: Sequence[dict[str, Any]], secrets: Mapping[str, Mapping[str, str]] | None = None
    ) -> CreateRequest:
        """Load a request that `dump` wrote, with the input and the secrets. Fields that `dump` did not write have defaults."""
        values = orjson.loads(text)
        known = {one.name for one in fields(cls)}
        values["include"] = frozenset(values["include"])
        values["charges"] = [LimitCharge(**charge) for charge in values.get("charges", ())]
        stored = {name: value for name, value in values.items() if name in known}
        return cls(**{**stored, "input": input, "secrets": secrets or {}})


# Fields in other tables: items, the lease, and the row of the response.
STORED_ELSEWHERE: Final = ("input", "secrets", "request_id")


@cache
def _dumped_fields() -> Mapping[str, Any]:
    """Return the fields of a dumped request with their defaults. `include` has none, as earlier versions need the field."""
    names = [one for one in fields(CreateRequest) if one.name not in (*STORED_ELSEWHERE, "include")]
    defaults = {one.name: one.default if one.default_factory is MISSING else one.default_factory() for one in names}
    return {**defaults, "include": MISSING}


def _equals(value: Any, default: Any) -> bool:
    """Return True if a value has the JSON of a default, which distinguishes 0 from 0.0."""
    if isinstance(value, list) and isinstance(default, tuple):
        return not value and not default
    return type(value) is type(default) and bool(value == default)


def _listed(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} in a request")
