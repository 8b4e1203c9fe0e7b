"""The objects among the fields of a create request, one model each."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from responses_app.schemas.base import Effort, StrictModel
from responses_app.schemas.text_format import OutputFormat


class StreamOptions(StrictModel):
    """`stream_options`; `include_usage` belongs to another API, and usage always comes (clients.md §3.5)."""

    include_obfuscation: bool | None = None
    include_usage: bool | None = None


class ReasoningOptions(StrictModel):
    """`reasoning`."""

    effort: Effort | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    generate_summary: Literal["auto", "concise", "detailed"] | None = None
    context: Literal["auto", "current_turn", "all_turns"] | None = None
    mode: str | None = None


class BackgroundOptions(StrictModel):
    """`background_options`: who leaves hours for the answer stands behind the others (openai 3.54)."""

    completion_window: Literal["soonest", "2h", "8h"] | None = None
    continuation_id: str | None = None

    @property
    def patient(self) -> bool:
        """Whether there is time."""
        return self.completion_window in ("2h", "8h")


class CacheOptions(StrictModel):
    """`prompt_cache_options`: hints to a cache that keeps every prefix as long as it has room, whatever they say."""

    mode: Literal["implicit", "explicit"] | None = None
    ttl: Literal["30m", "12h"] | None = None
    comparison_response_id: str | None = None
    prewarm: bool | None = None


class ImageOptions(StrictModel):
    """`image`: how images of the context are compressed. This server compresses none, which it cannot be asked to require."""

    context_compression: Literal["auto", "enabled", "disabled"] | None = None


class AccessPrograms(StrictModel):
    """`access_programs`: what OpenAI asks for access to some of its models. The models of this server ask for none."""

    cyber: Literal["standard", "daybreak_blue", "daybreak_red"] | None = None


class ContextManagement(StrictModel):
    """An entry of `context_management`."""

    type: Literal["compaction"]
    compact_threshold: Annotated[int, Field(ge=1000)] | None = None


class TextOptions(StrictModel):
    """`text`."""

    format: OutputFormat | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
