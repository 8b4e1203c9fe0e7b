"""Views of Messages: create, and count the tokens of a request."""

from __future__ import annotations

from functools import partial

import orjson
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from responses_app.access import rate_limits, request_access
from responses_app.api.http import REQUEST_ID, json_response
from responses_app.api.started_run import start_or_repeat
from responses_app.api_formats.messages.message import message
from responses_app.api_formats.messages.request import parse_request
from responses_app.api_formats.messages.stream import MessageEncoder
from responses_app.models import ApiKey
from responses_app.runs import manager
from responses_app.wire import request_body


async def create(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """POST /v1/messages."""
    async with rate_limits.admit(key) as ticket:
        make = partial(parse_request, key=key, request_id=request.META[REQUEST_ID])
        parsed = await request_body.parse_body(request, key, make)
        with parsed.paths.translated():
            order = request_access.authorize(key, parsed.order)
            started = await start_or_repeat(request, order, ticket, by_body=True)
            if order.stream:
                encoder = MessageEncoder(shows_thinking=parsed.shows_thinking, prompt_tokens=await started.prompt_tokens())
                response: HttpResponseBase = started.stream(request, encoder)
            else:
                snapshot = orjson.loads(await started.snapshot())
                response = json_response(message(snapshot, shows_thinking=parsed.shows_thinking))
    for name, value in ticket.headers.items():
        response[name] = value
    return response


async def count_tokens(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """POST /v1/messages/count_tokens."""
    async with rate_limits.admit(key) as ticket:
        make = partial(parse_request, key=key, needs_limit=False)
        parsed = await request_body.parse_body(request, key, make)
        with parsed.paths.translated():
            counted = await manager.current().count(request_access.authorize(key, parsed.order))
        await ticket.release()
    return json_response({"input_tokens": counted}, headers=ticket.headers)
