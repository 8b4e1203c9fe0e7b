"""WebSocket routes: the same paths as `POST /v1/responses`."""

from __future__ import annotations

from channels.routing import URLRouter
from django.urls import re_path

from responses_app.sockets.consumer import ResponsesSocket, UnknownPath

application = URLRouter(
    [
        re_path(r"^(?:openresponses/)?v1/responses/?$", ResponsesSocket.as_asgi()),
        re_path(r"", UnknownPath.as_asgi()),
    ]
)
