"""Option objects of a create request."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from responses_app.schemas.text_format import OutputFormat
from responses_app.validation.base import Effort, StrictModel


class StreamOptions(StrictModel):
    """`stream_options`. `include_usage` is accepted from Chat Completions clients; usage is always included."""

    include_obfuscation: bool | None = None
    include_usage: bool | None = None


class ReasoningOptions(StrictModel):
    """`reasoning`."""

    effort: Effort | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    generate_summary: Literal["auto", "concise", "detailed"] | None = None
    context: Literal["auto", "current_turn", "all_turns"] | None = None
    mode: str | None = None


class RerunOptions(StrictModel):
    """`rerun` of the pages: the response whose request is run again, and how the server tools run."""

    of: Annotated[str, Field(max_length=64)]
    tools: Literal["recorded", "live", "ask"] = "live"


class BackgroundOptions(StrictModel):
    """`background_options`: a completion window of hours lowers the priority of the response."""

    completion_window: Literal["soonest", "2h", "8h"] | None = None
    continuation_id: str | None = None

    @property
    def can_wait(self) -> bool:
        """Return True for a completion window of hours."""
        return self.completion_window in ("2h", "8h")


class CacheOptions(StrictModel):
    """`prompt_cache_options`: hints, and the response to compare with for `prompt_cache_diagnostics`."""

    mode: Literal["implicit", "explicit"] | None = None
    ttl: Literal["30m", "12h"] | None = None
    comparison_response_id: str | None = None
    prewarm: bool | None = None


class CacheBreakpoint(StrictModel):
    """`prompt_cache_breakpoint` of a part. Every prefix is cached, so it has no effect."""

    mode: Literal["explicit"] = "explicit"
    ttl: Literal["30m", "12h"] | None = None


class CacheControl(StrictModel):
    """`cache_control` of Anthropic's API. Every prefix is cached, so it has no effect."""

    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None
    # Claude Code sends it.
    scope: str | None = None


class Cacheable(StrictModel):
    """Object that clients of Anthropic's API mark for the cache, without an effect."""

    cache_control: CacheControl | None = None


class ImageOptions(StrictModel):
    """`image`: compression of images in the context. This server compresses none."""

    context_compression: Literal["auto", "enabled", "disabled"] | None = None


class AccessPrograms(StrictModel):
    """`access_programs`: access to restricted OpenAI models. Models of this server need none."""

    cyber: Literal["standard", "daybreak_blue", "daybreak_red"] | None = None


class ContextManagement(StrictModel):
    """An entry of `context_management`."""

    type: Literal["compaction"]
    compact_threshold: Annotated[int, Field(ge=1000)] | None = None


class TextOptions(StrictModel):
    """`text`."""

    format: OutputFormat | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
