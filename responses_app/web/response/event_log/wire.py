"""The wire view of a response: the bytes that were sent, and the request again as curl and as Python."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import orjson
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from responses_app.invisible import escaped_in_json, escaped_in_python
from responses_app.models import Direction, Item, Response
from responses_app.store.log import reader
from responses_app.web.render.log_events import frames
from responses_app.web.render.sanitize import truncate
from responses_app.web.response.detail import get_response, number, render_page
from responses_app.wire.sse import encode

SHOWN: Final = 100
LONGEST: Final = 4_000
LARGEST: Final = 100_000
# Fields of a response that a request has too, and what they are if nobody says anything.
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
PAD: Final = "    "
LINE_LENGTH: Final = 100
# What the server adds to an item that a client has sent.
ADDED: Final = ("id", "status")


@dataclass(frozen=True, slots=True)
class WireBlock:
    """One event as it was sent, or its beginning."""

    number: int
    text: str
    left_out: int


@never_cache
@login_required
@require_safe
def show(request: HttpRequest, uid: str) -> HttpResponse:
    """GET /responses/ID/wire."""
    row = get_response(request, uid)
    after = number(request, "after")
    found = list(islice(frames(row.pk, after), SHOWN + 1))
    blocks = [WireBlock(frame.number, *truncate(encode(frame).decode().rstrip("\n"), LONGEST)) for frame in found[:SHOWN]]
    body = _request(row)
    large = len(orjson.dumps(body)) > LARGEST
    url = request.build_absolute_uri("/v1")
    return render_page(
        request,
        row,
        "response-wire",
        "web/wire.html",
        blocks=blocks,
        after=after,
        previous=max(after - SHOWN, -1) if after >= 0 else None,
        following=blocks[-1].number if len(found) > SHOWN else None,
        large=large,
        curl="" if large else _curl(url, body),
        python="" if large else _python(url, body),
    )


def _request(row: Response) -> dict[str, Any]:
    """A request that asks the same: what differs from the defaults, and the input as items."""
    first = reader.read(row.pk)[:1]
    told = orjson.loads(reader.snapshot_bytes(first[0].data)) if first else {}
    own = Item.objects.filter(response=row, direction=Direction.INPUT).order_by("pk").values_list("body", flat=True)
    given = [{key: value for key, value in json.loads(body).items() if key not in ADDED} for body in own]
    other = {name: told[name] for name, usual in FIELDS.items() if name in told and told[name] != usual}
    reasoning = {key: value for key, value in (told.get("reasoning") or {}).items() if value is not None}
    text = told.get("text") or {}
    shaped = {"text": text} if text.get("format", {"type": "text"}) != {"type": "text"} else {}
    return {
        "model": row.model,
        "input": given,
        **other,
        **({"reasoning": reasoning} if reasoning else {}),
        **shaped,
        **({"conversation": told["conversation"]["id"]} if told.get("conversation") else {}),
        **({"stream": True} if row.streamed else {}),
    }


def _curl(url: str, body: Mapping[str, Any]) -> str:
    data = shlex.quote(escaped_in_json(json.dumps(body, ensure_ascii=False)))
    return (
        f'curl {shlex.quote(url + "/responses")} -H "Authorization: Bearer $KEY" \\\n'
        f'  -H "Content-Type: application/json" -d {data}'
    )


def _literal(value: Any, depth: int = 1) -> str:
    """Return the value as a Python literal, broken into lines where it is long, as a formatter would."""
    flat = repr(value)
    if not isinstance(value, dict | list) or not value or len(flat) + len(PAD) * depth <= LINE_LENGTH:
        return flat
    if isinstance(value, dict):
        parts = [f"{name!r}: {_literal(one, depth + 1)}" for name, one in value.items()]
    else:
        parts = [_literal(one, depth + 1) for one in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    lines = "".join(f"{PAD * (depth + 1)}{part},\n" for part in parts)
    return f"{opening}\n{lines}{PAD * depth}{closing}"


def _python(url: str, body: Mapping[str, Any]) -> str:
    told = "".join(f"    {name}={_literal(value)},\n" for name, value in body.items())
    given = escaped_in_python(told)
    call = f"client.responses.create(\n{given})"
    head = f'import os\n\nfrom openai import OpenAI\n\nclient = OpenAI(base_url={url!r}, api_key=os.environ["KEY"])\n'
    if body.get("stream"):
        return f"{head}for event in {call}:\n    print(event)\n"
    return f"{head}response = {call}\nprint(response.output_text or response.output)\n"
