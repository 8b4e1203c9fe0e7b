"""Download of a stored file: the bytes as a stream, never shown by a browser."""

from __future__ import annotations

from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header

from responses_app.store.files import storage


async def download_response(storage_name: str, filename: str, size: int) -> StreamingHttpResponse:
    """Return a response that streams a file of `size` bytes. Raises FileNotFoundError if the storage has no such file."""
    headers = {
        "Content-Length": str(size),
        "Content-Disposition": content_disposition_header(True, filename) or "attachment",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Cache-Control": "private",
    }
    chunks = await storage.open_chunks(storage_name)
    return StreamingHttpResponse(chunks, content_type="application/octet-stream", headers=headers)
