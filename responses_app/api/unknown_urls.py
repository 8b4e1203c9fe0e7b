"""Unknown URLs of the API: a JSON 404 that names the URL to use instead."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from responses_app.api.http import error_response, format_path, with_headers
from responses_app.errors import NotFound
from responses_app.observability.records import note
from responses_app.runs.ids import new_id

# What to use in place of other URLs of OpenAI's and Anthropic's APIs, by the beginning of the path below `/v1/`.
INSTEAD: Mapping[str, str] = {
    "messages/batches": "This server has no batches: send each request to '/v1/messages'.",
    "batches": "This server has no batches: send each request to '/v1/responses', with 'background' to get the answer later.",
    "completions": "Use '/v1/chat/completions' or '/v1/responses'.",
    "complete": "Use '/v1/messages'.",
    "assistants": "Use '/v1/responses'.",
    "threads": "Use '/v1/conversations' with '/v1/responses'.",
    "embeddings": "This server computes no embeddings. It searches files with '/v1/vector_stores'.",
    "uploads": "Send whole files to '/v1/files'.",
    "audio": "Models of this server write text alone.",
    "images": "Models of this server write text alone.",
    "moderations": "This server has no moderation.",
    "skills": "This server has no skills.",
}


@csrf_exempt
async def not_found(request: HttpRequest, path: str = "") -> HttpResponseBase:
    """Answer an unknown path below `/v1`, or a known path without `/v1`, with a JSON 404."""
    began, request_id = time.monotonic(), new_id("req_")
    note(request_id=request_id)
    error = NotFound(f"Invalid URL ({request.method} {request.path}).{_hint(path)}")
    return with_headers(error_response(error, request_id, format_path(request)), began, request_id)


def _hint(path: str) -> str:
    """Return a sentence about the path below `/v1`, which begins with a slash, or about a path without `/v1`."""
    if path and not path.startswith("/"):
        return f" The API is below '/v1': '/v1/{path}'. Add '/v1' to the base URL of your client."
    if path.startswith("/v1/"):
        return " Leave out '/v1' at the end of the base URL of your client."
    hint = next((text for start, text in INSTEAD.items() if re.match(rf"/{start}(/|$)", path)), "")
    return f" {hint}" if hint else ""
