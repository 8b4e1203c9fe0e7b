"""Unknown URLs of clients: a JSON 404 in the format of the client, with the URL to use instead."""

from __future__ import annotations

import orjson
import pytest
from django.test import Client

CASES = [
    ("POST", "/v1/messages/batches", "This server has no batches: send each request to '/v1/messages'."),
    ("GET", "/v1/messages/batches/msgbatch_1/results", "This server has no batches"),
    ("POST", "/v1/batches", "with 'background' to get the answer later."),
    ("POST", "/v1/completions", "Use '/v1/chat/completions' or '/v1/responses'."),
    ("POST", "/v1/embeddings", "This server computes no embeddings."),
    ("POST", "/v1/images/generations", "Models of this server write text alone."),
    ("POST", "/v1/v1/messages", "Leave out '/v1' at the end of the base URL of your client."),
    ("POST", "/chat/completions", "The API is below '/v1': '/v1/chat/completions'. Add '/v1' to the base URL of your client."),
    ("POST", "/messages", "'/v1/messages'. Add '/v1' to the base URL of your client."),
    ("POST", "/embeddings", "Add '/v1' to the base URL of your client."),
]


@pytest.mark.parametrize(("method", "path", "hint"), CASES)
def test_the_error_says_what_to_use(method: str, path: str, hint: str) -> None:
    answer = Client(enforce_csrf_checks=True).generic(method, path, "{}", content_type="application/json")
    error = orjson.loads(answer.content)["error"]
    message = error if isinstance(error, str) else error["message"]
    assert answer.status_code == 404
    assert message.startswith(f"Invalid URL ({method} {path}). ")
    assert hint in message


def test_other_urls_have_no_hint() -> None:
    answer = Client().get("/v1/nothing")
    assert orjson.loads(answer.content)["error"]["message"] == "Invalid URL (GET /v1/nothing)."
    assert answer["x-request-id"]


def test_clients_of_messages_get_their_format() -> None:
    answer = Client().post("/v1/skills", headers={"anthropic-version": "2023-06-01"})
    body = orjson.loads(answer.content)
    assert (body["type"], body["error"]["type"]) == ("error", "not_found_error")
    assert body["request_id"] == answer["request-id"]
    assert "no skills" in body["error"]["message"]


@pytest.mark.django_db
def test_a_response_for_the_page_of_the_responses_is_refused_in_json() -> None:
    client = Client(enforce_csrf_checks=True)
    answer = client.post("/responses", {}, content_type="application/json")
    assert answer.status_code == 404
    assert "Add '/v1' to the base URL" in orjson.loads(answer.content)["error"]["message"]
    other = client.post("/keys", {})
    assert (other.status_code, other["content-type"]) == (403, "text/html; charset=utf-8")
