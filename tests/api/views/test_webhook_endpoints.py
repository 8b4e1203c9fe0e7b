"""Webhook endpoints by the openai client, against a server: every method, and the events of background responses."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.support.server.processes import named
from tests.support.server.requests import call, create
from tests.support.server.serve_command import END_LIMIT, Server
from tests.support.waiting import wait_until
from tests.support.web.chat_visitor import tape
from tests.support.webhook_receiver import WebhookReceiver, webhook_receiver

HOOK: dict[str, Any] = {"name": "hook", "url": "https://example.com/hook", "event_types": ["response.completed"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("webhooks")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with Server(folder / "data", "--engine", tape(folder), RESPONSES_WEBHOOK_PRIVATE_HOSTS="127.0.0.1") as server:
        yield server.ready()


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with webhook_receiver() as receiver:
        yield receiver


def connect(server: Server) -> openai.OpenAI:
    return openai.OpenAI(api_key=server.key, base_url=f"{server.url}/v1", max_retries=0)


def test_every_method_of_the_openai_client(server: Server) -> None:
    client = connect(server)
    made = client.webhooks.create(**HOOK)
    assert made.signing_secret.startswith("whsec_")
    read = client.webhooks.retrieve(made.id)
    assert (read.name, read.url, read.event_types) == (HOOK["name"], HOOK["url"], HOOK["event_types"])
    assert read.signing_secret_hint == f"whsec_…{made.signing_secret[-4:]}"
    assert made.signing_secret not in read.to_json()
    changed = client.webhooks.update(made.id, name="new", event_types=["response.failed", "response.failed"])
    assert (changed.name, changed.event_types, changed.url) == ("new", ["response.failed"], HOOK["url"])
    assert made.id in [endpoint.id for endpoint in client.webhooks.list(limit=1)]
    rotated = client.webhooks.rotate_secret(made.id, keep_old_secret_active_for_24_hours=True)
    assert rotated.signing_secret != made.signing_secret
    assert read.to_dict()["old_secret_active_until"] is None
    assert rotated.to_dict()["old_secret_active_until"] == (rotated.updated_at or 0) + 24 * 60 * 60
    assert client.webhooks.rotate_secret(made.id).to_dict()["old_secret_active_until"] is None
    assert client.webhooks.event_types.list().data == [
        "response.completed",
        "response.failed",
        "response.incomplete",
        "response.cancelled",
    ]
    deleted = client.webhooks.delete(made.id)
    assert (deleted.deleted, deleted.object) == (True, "webhook_endpoint.deleted")
    with pytest.raises(openai.NotFoundError):
        client.webhooks.retrieve(made.id)


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"url": "http://example.com"}, "url"),
        ({"url": "ftp://example.com"}, "url"),
        ({"url": "https://me:secret@example.com"}, "url"),
        ({"url": "nonsense"}, "url"),
        ({"event_types": []}, "event_types"),
        ({"event_types": ["batch.completed"]}, "event_types[0]"),
        ({"name": ""}, "name"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_an_invalid_endpoint_is_refused_by_path(server: Server, changes: dict[str, Any], param: str) -> None:
    answer = call(server, "POST", "webhook_endpoints", json={**HOOK, **changes})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param


def test_a_test_event_is_sent_at_once(server: Server, receiver: WebhookReceiver) -> None:
    client = connect(server)
    made = client.webhooks.create(**{**HOOK, "url": receiver.url})
    receiver.statuses = [418]
    result = client.webhooks.test(made.id, event_type="response.failed")
    assert (result.status_code, result.event_type, result.webhook_endpoint_id) == (418, "response.failed", made.id)
    (webhook,) = receiver.received
    event = client.webhooks.unwrap(webhook.body, webhook.headers, secret=made.signing_secret)
    assert event.type == "response.failed"
    client.webhooks.update(made.id, url="http://127.0.0.1:9/")
    with pytest.raises(openai.BadRequestError, match="did not answer"):
        client.webhooks.test(made.id, event_type="response.failed")
    client.webhooks.delete(made.id)


def test_events_of_background_responses_alone(server: Server, receiver: WebhookReceiver) -> None:
    client = connect(server)
    types = ["response.completed", "response.failed"]
    made = client.webhooks.create(**{**HOOK, "url": receiver.url, "event_types": types})
    foreground = server.ask(model="chat", input="markdown").json()["id"]
    done = create(server, model="chat", input="markdown", background=True)["id"]
    failed = create(server, model="chat", input="breakage", background=True)["id"]
    wait_until(lambda: len(receiver.received) == 2, explain=lambda: server.output)
    events = [client.webhooks.unwrap(one.body, one.headers, secret=made.signing_secret) for one in receiver.received]
    by_id: dict[str, str] = {event.data.id: event.type for event in events}  # type: ignore[union-attr]
    assert by_id == {done: "response.completed", failed: "response.failed"}
    assert foreground not in by_id
    assert client.responses.retrieve(done).status == "completed"
    client.webhooks.delete(made.id)


def test_no_event_is_lost_by_a_kill_of_the_server(folder: Path, tmp_path: Path) -> None:
    url = tape(folder)
    first = Server(tmp_path / "data", "--engine", url, RESPONSES_WEBHOOK_PRIVATE_HOSTS="127.0.0.1").ready()
    with webhook_receiver([503, 200]) as receiver:
        try:
            client = connect(first)
            secret = client.webhooks.create(**{**HOOK, "url": receiver.url}).signing_secret
            uid = create(first, model="chat", input="markdown", background=True)["id"]
            # Refused once, so that the next attempt is due while no server runs.
            wait_until(lambda: receiver.received, explain=lambda: first.output)
            os.kill(named(first.process.pid, "responses_app.server.processes.main"), signal.SIGKILL)
            first.process.wait(END_LIMIT)
        finally:
            first.end()
        second = Server(tmp_path / "data", "--engine", url, RESPONSES_WEBHOOK_PRIVATE_HOSTS="127.0.0.1").ready()
        try:
            wait_until(lambda: len(receiver.received) >= 2, limit_s=90, explain=lambda: second.output)
        finally:
            second.end()
    first_webhook, *_, last = receiver.received
    event = client.webhooks.unwrap(last.body, last.headers, secret=secret)
    assert event.data.id == uid  # type: ignore[union-attr]
    assert last.headers["webhook-id"] == first_webhook.headers["webhook-id"]
