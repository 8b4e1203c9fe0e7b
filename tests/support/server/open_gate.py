"""Gate of an application without keys, in place of the API's gate."""

from __future__ import annotations

from collections.abc import Sequence

from responses_app.errors import ApiError


class OpenGate:
    """Gate of an application without keys: all clients share a single account."""

    def is_api(self, path: str) -> bool:
        """Return True for all paths but `/page`."""
        return path != "/page"

    def is_upload(self, method: str, path: str) -> bool:
        """Return True for the path `/upload`."""
        return method == "POST" and path == "/upload"

    def cors_headers(self, path: str, origin: str) -> list[tuple[bytes, bytes]]:
        """Return no headers."""
        del path, origin
        return []

    def client_address(self, peer: str, forwarded_for: Sequence[bytes]) -> str:
        """Return the address of the connection."""
        del forwarded_for
        return peer

    def cached_account(self, authorization: str) -> str | None:
        """Return the shared account."""
        del authorization
        return "anybody"

    def note_refusal(self, refusal: ApiError, request_id: str, line: tuple[str, str], authorization: str, address: str) -> None:
        """Note nothing."""
        del refusal, request_id, line, authorization, address

    async def look_up(self, authorization: str) -> str:
        """Return the shared account."""
        del authorization
        return "anybody"
