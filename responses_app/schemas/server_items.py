"""Schemas of items of tools that another server ran. Clients send these items as history; the model sees past calls.

The items of the tools of this server are in `tools`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from responses_app.tools.mcp.request.schema import MCP_ITEMS
from responses_app.tools.registry import INPUT_ITEMS
from responses_app.validation.base import IMAGE_URL_LIMIT, CallEnding, CallId, LongText, StrictModel


class ImageGenerationCall(StrictModel):
    """Generated image; `result` is the image in base64."""

    type: Literal["image_generation_call"]
    id: str | None = None
    result: Annotated[str, Field(max_length=IMAGE_URL_LIMIT)] | None = None
    revised_prompt: LongText | None = None
    action: Literal["generate", "edit", "auto"] | None = None
    background: Literal["transparent", "opaque", "auto"] | None = None
    output_format: Literal["png", "webp", "jpeg", "gif", "svg"] | None = None
    quality: Literal["low", "medium", "high", "xhigh", "max", "auto"] | None = None
    size: str | None = None
    svg_usage: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    status: CallEnding | None = None


class Program(StrictModel):
    """Program of the model that called tools."""

    type: Literal["program"]
    id: str | None = None
    call_id: CallId
    code: LongText
    fingerprint: str | None = None


class ProgramOutput(StrictModel):
    """Result of a program."""

    type: Literal["program_output"]
    id: str | None = None
    call_id: CallId
    result: LongText
    status: Literal["completed", "incomplete"] | None = None


SERVER_ITEMS: Mapping[str, type[StrictModel]] = {
    **INPUT_ITEMS,
    **MCP_ITEMS,
    "image_generation_call": ImageGenerationCall,
    "program": Program,
    "program_output": ProgramOutput,
}
