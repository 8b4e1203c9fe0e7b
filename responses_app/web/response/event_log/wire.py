"""Raw page of a response: the SSE stream, and the request as curl and as Python."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import orjson
from django.http import HttpRequest, HttpResponse

from responses_app.api_formats.client_body import is_shortened
from responses_app.models import ApiFormat, Direction, Item, Response
from responses_app.store.log import reader
from responses_app.utils.invisible import escaped_in_json, escaped_in_python
from responses_app.utils.url_prefix import api_url
from responses_app.web.private import private
from responses_app.web.render.log_events import frames
from responses_app.web.render.sanitize import hide_url_queries, pretty_json, truncate
from responses_app.web.response.detail import get_response, number, render_page
from responses_app.web.responses.parameters import client_body, parameters
from responses_app.wire.sse import encode

PAGE_EVENTS: Final = 100
MAX_EVENT_CHARS: Final = 4_000
# Characters of the request as JSON.
MAX_JSON_CHARS: Final = 20_000
# Bytes of a request. A larger request is not reproduced.
MAX_REQUEST_BYTES: Final = 100_000
# Fields of both response and request, with their defaults.
FIELDS: Final[Mapping[str, Any]] = {
    "instructions": None,
    "previous_response_id": None,
    "tools": [],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "max_output_tokens": None,
    "temperature": None,
    "top_p": None,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "top_logprobs": 0,
    "truncation": "disabled",
    "background": False,
    "store": True,
    "metadata": {},
}
INDENT: Final = "    "
LINE_LENGTH: Final = 100
# Paths below /v1, by API format.
PATHS: Final[Mapping[str, str]] = {
    ApiFormat.RESPONSES: "responses",
    ApiFormat.CHAT_COMPLETIONS: "chat/completions",
    ApiFormat.MESSAGES: "messages",
}


@dataclass(frozen=True, slots=True)
class Method:
    """Method of a package that makes the request: `extra` are the parameters of the server that it does not have."""

    client: str
    path: str
    name: str
    result: str
    extra: frozenset[str]

    @property
    def package(self) -> str:
        """Return the name of the package."""
        return self.client.lower()


METHODS: Final[Mapping[str, Method]] = {
    ApiFormat.RESPONSES: Method(
        "OpenAI",
        "v1",
        "responses.create",
        "response.output_text or response.output",
        frozenset(
            {
                "presence_penalty",
                "frequency_penalty",
                "top_k",
                "min_p",
                "repetition_penalty",
                "ignore_eos",
                "seed",
                "stop",
                "logit_bias",
            }
        ),
    ),
    ApiFormat.CHAT_COMPLETIONS: Method(
        "OpenAI",
        "v1",
        "chat.completions.create",
        "response.choices",
        frozenset({"top_k", "min_p", "repetition_penalty", "ignore_eos", "chat_template_kwargs"}),
    ),
    # The package adds /v1 itself.
    ApiFormat.MESSAGES: Method(
        "Anthropic",
        "",
        "messages.create",
        "response.content",
        frozenset({"temperature", "top_p", "top_k", "seed", "mcp_servers", "context_management"}),
    ),
}
# Fields that the server adds to an item of the client.
ADDED: Final = ("id", "status")


@dataclass(frozen=True, slots=True)
class WireBlock:
    """Event in SSE form, truncated to `MAX_EVENT_CHARS`."""

    number: int
    text: str
    left_out: int


@private("GET", "HEAD")
def show(request: HttpRequest, uid: str) -> HttpResponse:
    """Render GET /responses/ID/wire."""
    row = get_response(request, uid)
    after = number(request, "after")
    page = list(islice(frames(row.pk, after), PAGE_EVENTS + 1))
    blocks = [
        WireBlock(frame.number, *truncate(hide_url_queries(encode(frame).decode().rstrip("\n")), MAX_EVENT_CHARS))
        for frame in page[:PAGE_EVENTS]
    ]
    body = _request(row)
    is_large = len(orjson.dumps(body)) > MAX_REQUEST_BYTES
    request_json, left_out = truncate("" if is_large else pretty_json(body), MAX_JSON_CHARS)
    url = api_url(request).removesuffix("v1")
    as_sent = client_body(row)
    # A shortened body is shown, and not sent again.
    is_complete = bool(as_sent) and not is_shortened(as_sent)
    api_format, sent = (ApiFormat(row.api_format), json.loads(as_sent)) if is_complete else (ApiFormat.RESPONSES, body)
    sent_json, sent_left_out = truncate(as_sent, MAX_JSON_CHARS)
    return render_page(
        request,
        row,
        "response-wire",
        "web/wire.html",
        blocks=blocks,
        after=after,
        previous=max(after - PAGE_EVENTS, -1) if after >= 0 else None,
        following=blocks[-1].number if len(page) > PAGE_EVENTS else None,
        is_large=is_large,
        is_converted=api_format != row.api_format,
        sent_json=sent_json,
        sent_left_out=sent_left_out,
        request_json=request_json,
        request_left_out=left_out,
        curl="" if is_large else _curl(url, api_format, sent),
        python="" if is_large else _python(url, api_format, sent),
    )


def _request(row: Response) -> dict[str, Any]:
    """Rebuild the request: the input items and all parameters with a value other than the default. Queries of MCP URLs are hidden."""
    first = reader.read(row.pk)[:1]
    snapshot = orjson.loads(hide_url_queries(reader.snapshot_bytes(first[0].data).decode())) if first else {}
    bodies = Item.objects.filter(response=row, direction=Direction.INPUT).order_by("pk").values_list("body", flat=True)
    input_items = [{key: value for key, value in json.loads(body).items() if key not in ADDED} for body in bodies]
    other = {name: snapshot[name] for name, default in FIELDS.items() if name in snapshot and snapshot[name] != default}
    reasoning = {key: value for key, value in (snapshot.get("reasoning") or {}).items() if value is not None}
    text = snapshot.get("text") or {}
    text_field = {"text": text} if text.get("format", {"type": "text"}) != {"type": "text"} else {}
    # The snapshot repeats only a part of the parameters, without `seed` and `stop`.
    stored = json.loads(hide_url_queries(json.dumps(parameters(row))))
    return {
        "model": row.model,
        "input": input_items,
        **stored,
        **other,
        **({"reasoning": reasoning} if reasoning else {}),
        **text_field,
        **({"conversation": snapshot["conversation"]["id"]} if snapshot.get("conversation") else {}),
        **({"stream": True} if row.streamed else {}),
    }


def _curl(url: str, api_format: ApiFormat, body: Mapping[str, Any]) -> str:
    data = shlex.quote(escaped_in_json(json.dumps(body, ensure_ascii=False)))
    return (
        f'curl {shlex.quote(f"{url}v1/{PATHS[api_format]}")} -H "Authorization: Bearer $KEY" \\\n'
        f'  -H "Content-Type: application/json" -d {data}'
    )


def _literal(value: Any, depth: int = 1) -> str:
    """Format the value as a Python literal, with long values on several lines."""
    flat = repr(value)
    if not isinstance(value, dict | list) or not value or len(flat) + len(INDENT) * depth <= LINE_LENGTH:
        return flat
    if isinstance(value, dict):
        parts = [f"{name!r}: {_literal(field, depth + 1)}" for name, field in value.items()]
    else:
        parts = [_literal(element, depth + 1) for element in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    lines = "".join(f"{INDENT * (depth + 1)}{part},\n" for part in parts)
    return f"{opening}\n{lines}{INDENT * depth}{closing}"


def _python(url: str, api_format: ApiFormat, body: Mapping[str, Any]) -> str:
    method = METHODS[api_format]
    extra = {name: value for name, value in body.items() if name in method.extra}
    known = {name: value for name, value in body.items() if name not in method.extra}
    fields = {**known, **({"extra_body": extra} if extra else {})}
    arguments = "".join(f"    {name}={_literal(value)},\n" for name, value in fields.items())
    call = f"client.{method.name}(\n{escaped_in_python(arguments)})"
    client = f'{method.client}(base_url={url + method.path!r}, api_key=os.environ["KEY"])'
    head = f"import os\n\nfrom {method.package} import {method.client}\n\nclient = {client}\n"
    if body.get("stream"):
        return f"{head}for event in {call}:\n    print(event)\n"
    return f"{head}response = {call}\nprint({method.result})\n"
