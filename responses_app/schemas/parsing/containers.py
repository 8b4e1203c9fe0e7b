"""Body of `POST /v1/containers`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from responses_app.errors import InvalidRequest
from responses_app.models.containers import DEFAULT_EXPIRY_MINUTES, MAX_CONTAINER_NAME_CHARS, MAX_EXPIRY_MINUTES
from responses_app.tools.code_interpreter.schema import MAX_CONTAINER_FILES, parse_network_policy
from responses_app.validation.base import Array, FileId, StoredText, StrictModel, validate

Memory = Literal["1g", "4g", "16g", "64g"]


class ContainerExpiry(StrictModel):
    """Time without use after which a container expires."""

    anchor: Literal["last_active_at"]
    minutes: Annotated[int, Field(ge=1, le=MAX_EXPIRY_MINUTES)]


class ContainerRequest(StrictModel):
    """Body of `POST /v1/containers`."""

    name: Annotated[StoredText, Field(min_length=1, max_length=MAX_CONTAINER_NAME_CHARS)]
    file_ids: Annotated[Array[FileId], Field(max_length=MAX_CONTAINER_FILES)] = Field(default_factory=list)
    expires_after: ContainerExpiry | None = None
    memory_limit: Memory = "1g"
    network_policy: Any = None
    skills: Any = None

    @property
    def minutes(self) -> int:
        """Minutes without use after which the container expires."""
        return DEFAULT_EXPIRY_MINUTES if self.expires_after is None else self.expires_after.minutes


def parse_container(raw: Mapping[str, Any]) -> ContainerRequest:
    """Parse the body of `POST /v1/containers`. Raises InvalidRequest."""
    parsed = validate(ContainerRequest, raw, ())
    if parsed.network_policy is not None:
        parse_network_policy(parsed.network_policy, ("network_policy",))
    if parsed.skills:
        message = "Invalid 'skills': containers of this server have no skills."
        raise InvalidRequest(message, param="skills", code="unsupported_value")
    return parsed
