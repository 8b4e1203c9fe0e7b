"""Unknown URLs of clients: a JSON 404 in the format of the client, with the URL to use instead."""

from __future__ import annotations

import orjson
import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import include, path

CASES = [
    ("POST", "/v1/messages/batches", "This server has no batches: send each request to '/v1/messages'."),
    ("GET", "/v1/messages/batches/msgbatch_1/results", "This server has no batches"),
    ("POST", "/v1/batches", "with 'background' to get the answer later."),
    ("POST", "/v1/completions", "Use '/v1/chat/completions' or '/v1/responses'."),
    ("POST", "/v1/embeddings", "This server computes no embeddings."),
    ("POST", "/v1/images/generations", "Models of this server write text alone."),
    ("POST", "/v1//responses", "Leave out the slash at the end of the base URL of your client."),
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
@pytest.mark.parametrize(
    "path", ["/models", "/models/demo-chat", "/responses", "/responses/resp_1", "/files", "/vector_stores"]
)
@pytest.mark.parametrize("headers", [{"accept": "application/json"}, {"accept": "*/*", "authorization": "Bearer sk-1"}])
def test_a_page_is_no_answer_for_a_client_of_the_api(path: str, headers: dict[str, str]) -> None:
    answer = Client().get(path, headers=headers)
    assert answer.status_code == 404
    message = orjson.loads(answer.content)["error"]["message"]
    assert message.startswith(f"Invalid URL (GET {path}). The API is below '/v1': '/v1{path}'. Add '/v1' to the base URL")
    assert answer["x-request-id"]


@pytest.mark.parametrize("headers", [{"accept": "application/json"}, {"x-api-key": "sk-1"}])
def test_a_client_that_checks_its_base_url_gets_json(headers: dict[str, str]) -> None:
    answer = Client().get("/", headers=headers)
    assert (answer.status_code, orjson.loads(answer.content)) == (200, {"message": "The API is below '/v1'."})
    assert Client().head("/", headers=headers).status_code == 200
    refused = Client(enforce_csrf_checks=True).post("/", "{}", content_type="application/json", headers=headers)
    assert refused.status_code == 404
    assert orjson.loads(refused.content)["error"]["message"] == "Invalid URL (POST /). The API is below '/v1'."


@pytest.mark.django_db
def test_browsers_get_the_page_also_behind_a_proxy_with_keys() -> None:
    answer = Client().get("/models", headers={"accept": "text/html,*/*;q=0.8", "authorization": "Bearer sk-1"})
    assert answer["content-type"].startswith("text/html") or answer.status_code == 302
    assert Client().get("/models")["content-type"].startswith("text/html")


@pytest.mark.django_db
def test_scripts_of_the_pages_get_what_they_ask_for_behind_a_proxy_with_accounts(admin_client: Client) -> None:
    answer = admin_client.get("/responses/resp_1.jsonl", headers={"accept": "*/*", "authorization": "Basic YTpi"})
    assert answer["content-type"].startswith("text/html")
    assert b"base URL" not in answer.content


@pytest.mark.django_db
def test_an_address_of_no_endpoint_stays_the_page_of_an_unknown_address() -> None:
    answer = Client().get("/nothing", headers={"accept": "application/json"})
    assert (answer.status_code, answer["content-type"]) == (404, "text/html; charset=utf-8")


@pytest.mark.django_db
def test_a_request_for_a_page_is_refused_in_json_unless_a_form_sent_it() -> None:
    client = Client(enforce_csrf_checks=True)
    for address in ("/responses", "/files"):
        answer = client.post(address, {}, content_type="application/json")
        assert answer.status_code == 404
        assert "Add '/v1' to the base URL" in orjson.loads(answer.content)["error"]["message"]
    other = client.post("/keys", {})
    assert (other.status_code, other["content-type"]) == (403, "text/html; charset=utf-8")


def app_view(_request: HttpRequest) -> HttpResponse:
    return HttpResponse("of the app")


urlpatterns = [path("embeddings", app_view), path("models", app_view), path("", include("project.urls"))]


@pytest.mark.urls(__name__)
def test_paths_of_another_app_stay_with_the_app() -> None:
    for address in ("/embeddings", "/models"):
        answer = Client().get(address, headers={"accept": "application/json", "authorization": "Bearer of-the-app"})
        assert (answer.status_code, answer.content) == (200, b"of the app")
    assert Client().get("/files", headers={"accept": "application/json"}).status_code == 404
