"""Image generation call: requests may contain calls of other servers; this server generates no images."""

from __future__ import annotations

from typing import Final

from responses_app.protocol.items.base import Family

IMAGE_GENERATION_CALL: Final = Family(
    type="image_generation_call",
    id_prefix="ig_",
    tool="image_generation",
    runs_on_server=True,
    progress=("in_progress", "generating", "partial_image", "completed"),
    running_status="generating",
    final_statuses=frozenset({"completed", "failed"}),
)
