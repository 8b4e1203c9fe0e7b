"""WebSockets of a whole server, through the client library of OpenAI."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai.types.responses import Response
from openai.types.websocket_reconnection import ReconnectingEvent
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.support import plain_http
from tests.support.engines.held_script import HeldScript, held_hello
from tests.support.server.processes import all_named
from tests.support.server.serve_command import Server
from tests.support.waiting import wait_until

# openai 3.57 uses websockets in a way that its version 17.1 has deprecated.
DEPRECATED = pytest.mark.filterwarnings("ignore:connect\\(\\) must be used as a context manager:DeprecationWarning")


def client(server: Server) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key=server.key, max_retries=0)


def call(server: Server, path: str = "/v1/responses", **headers: str) -> ClientConnection:
    key = {"Authorization": f"Bearer {server.key}"}
    return connect(f"ws://127.0.0.1:{server.port}{path}", additional_headers={**key, **headers}, max_size=None)


def create(**fields: Any) -> str:
    return json.dumps({"type": "response.create", "model": "tape", "input": "Hi", **fields})


def turn(socket: ClientConnection) -> list[dict[str, Any]]:
    """Return all events up to the end of a response."""
    events = [json.loads(socket.recv(30))]
    while events[-1]["type"] not in ("response.completed", "response.incomplete", "response.failed", "error"):
        events.append(json.loads(socket.recv(30)))
    return events


def wait_until_ended(api: openai.OpenAI, uid: str) -> Response:
    """Wait for and return the ended response."""
    responses: list[Response] = []

    def has_ended() -> bool:
        responses[:] = [api.responses.retrieve(uid)]
        return responses[0].status != "in_progress"

    wait_until(has_ended, limit_s=60, poll_s=0.1)
    return responses[0]


@pytest.mark.parametrize(
    ("path", "header", "status", "code"),
    [
        ("/v1/responses", "", 401, "invalid_api_key"),
        ("/v1/responses", "Bearer sk-wrong", 401, "invalid_api_key"),
        ("/openresponses/v1/responses", "Basic abc", 401, "invalid_api_key"),
        ("/v1/models", "Bearer sk-my-own-key", 404, None),
        ("/", "Bearer sk-my-own-key", 404, None),
    ],
)
def test_refused_upgrade_has_an_error_object(shared: Server, path: str, header: str, status: int, code: str | None) -> None:
    with pytest.raises(InvalidStatus) as refused, call(shared, path, Authorization=header, Cookie="sessionid=x"):
        pass
    answer = refused.value.response
    assert answer.status_code == status
    assert answer.headers["x-request-id"].startswith("req_")
    assert answer.headers["content-type"] == "application/json"
    error = json.loads(answer.body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == code


def test_handshake_has_a_request_id(shared: Server) -> None:
    with call(shared) as one, call(shared) as other:
        ids = [socket.response.headers["x-request-id"] for socket in (one, other) if socket.response]
        assert len({*ids}) == 2
        assert all(uid.startswith("req_") for uid in ids)


@DEPRECATED
def test_openai_client_continues_a_conversation(shared: Server) -> None:
    with client(shared) as api, api.responses.connect() as connection:
        previous = None
        for _ in range(3):
            fields: dict[str, Any] = {"store": False, **({"previous_response_id": previous} if previous else {})}
            connection.response.create(model="tape", input="Hi", **fields)
            events: list[Any] = []
            event: Any
            for event in connection:
                events.append(event)
                if event.type == "response.completed":
                    break
            assert events[0].type == "response.created"
            assert event.response.output_text == "Hello there!"
            assert event.response.previous_response_id == previous
            previous = event.response.id


@DEPRECATED
def test_asynchronous_openai_client_uses_lanes(shared: Server) -> None:
    from openai.lib.responses_websocket import AsyncResponsesWebSocketSession, ResponsesWebSocketLimits

    async def talk() -> list[str]:
        limits = ResponsesWebSocketLimits(
            max_lanes=8, max_events_per_lane=999, max_events=9999, max_bytes_per_lane=10**7, max_bytes=10**8
        )
        api = openai.AsyncOpenAI(base_url=f"{shared.url}/v1", api_key=shared.key, max_retries=0)
        async with (
            api.responses.connect() as connection,
            AsyncResponsesWebSocketSession(connection, limits=limits) as session,
        ):
            lanes = [session.default, session.lane("a"), session.lane("b")]
            for lane in lanes:
                await lane.send({"type": "response.create", "model": "tape", "input": "Hi"})
            responses = await asyncio.gather(*(lane.get_final_response() for lane in lanes))
            # A fork: what lane a has made goes on in lane b, and in lane a.
            for lane in lanes[1:]:
                await lane.send(
                    {"type": "response.create", "model": "tape", "input": "Hi", "previous_response_id": responses[1].id}
                )
            responses += await asyncio.gather(*(lane.get_final_response() for lane in lanes[1:]))
        await api.close()
        return [response.output_text for response in responses]

    assert asyncio.run(talk()) == ["Hello there!"] * 5


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> HeldScript:
    return held_hello(tmp_path_factory.mktemp("script"))


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory, script: HeldScript) -> Iterator[Server]:
    """A server with two web processes, whose responses pause."""
    server = Server(tmp_path_factory.mktemp("held") / "data", "--engine", script.url, "--web", "2")
    yield server.ready()
    server.end()


@DEPRECATED
def test_openai_client_steers(held: Server, script: HeldScript) -> None:
    script.hold()
    with client(held) as api, api.responses.connect() as connection:
        connection.response.create(model="held", input="Hi")
        events: list[Any] = []
        event: Any
        for event in connection:
            types = [one.type for one in events]
            events.append(event)
            if event.type == "response.output_text.delta" and event.type not in types:
                connection.response.steer(previous_response_id=events[0].response.id, input="Stop.")
            elif event.type == "response.incomplete":
                script.release()
            elif event.type == "response.completed":
                break
    assert "response.steer.accepted" in types
    steered = next(event for event in events if event.type == "response.incomplete").response
    assert steered.incomplete_details.reason == "steered"
    assert events[-1].response.previous_response_id == steered.id
    assert events[-1].response.output_text == "Hello there!"


def test_response_of_a_disconnected_client_is_cancelled_and_stored(held: Server, script: HeldScript) -> None:
    script.hold()
    with call(held) as socket:
        socket.send(create(model="held"))
        uid = json.loads(socket.recv(30))["response"]["id"]
        while json.loads(socket.recv(30))["type"] != "response.output_text.delta":
            pass
    with client(held) as api:
        response = wait_until_ended(api, uid)
    assert response.status == "cancelled"
    assert response.output[0].status == "incomplete"  # type: ignore[union-attr]


@DEPRECATED
def test_response_survives_the_kill_of_its_web_process(held: Server, script: HeldScript) -> None:
    script.hold()

    def create_next(event: ReconnectingEvent) -> None:
        # The client queues this request, and sends it when it is connected again.
        if event.attempt == 1:
            connection.response.create(model="held", input="On", previous_response_id=uid)

    with (
        client(held) as api,
        api.responses.connect(on_reconnecting=create_next, max_retries=20) as connection,
    ):
        connection.response.create(model="held", input="Hi")
        seen: list[Any] = []
        while not seen or seen[-1].type != "response.output_text.delta":
            seen.append(connection.recv())
        uid = seen[0].response.id
        for web in all_named(held.process.pid, "server.processes.web_process"):
            os.kill(web, signal.SIGKILL)
        script.release()
        response = wait_until_ended(api, uid)
        assert (response.status, response.output_text) == ("completed", "Hello there!")
        # The log begins with the events that came before the kill.
        replayed = list(api.responses.retrieve(uid, stream=True, include_obfuscation=False))
        for before, stored in zip(seen, replayed, strict=False):
            assert before.sequence_number == stored.sequence_number
            assert before.type == stored.type
        # The client reconnects by itself, and continues from the stored response. It may have got the first end before the kill.
        ends = (event.response for event in connection if event.type == "response.completed")
        assert next(end for end in ends if end.id != uid).previous_response_id == uid


def stop_finishes_responses_and_closes_with_1001(server: Server, script: HeldScript) -> None:
    """Stop a server with three connections and a running response."""
    script.hold()
    with call(server) as busy, call(server) as idle, call(server) as other:
        busy.send(create(model="held"))
        assert json.loads(busy.recv(30))["type"] == "response.created"
        server.process.send_signal(signal.SIGTERM)
        with pytest.raises(ConnectionClosed) as gone:
            idle.recv(30)
        assert gone.value.rcvd is not None
        assert gone.value.rcvd.code == 1001
        script.release()
        assert turn(busy)[-1]["type"] == "response.completed"
        for socket in (busy, other):
            with pytest.raises(ConnectionClosed) as gone:
                socket.recv(30)
            assert gone.value.rcvd is not None
            assert gone.value.rcvd.code == 1001
    assert server.process.wait(20) == 0
    assert "Traceback" not in server.output


def test_signals_close_with_1001_and_a_response_finishes_or_continues_after_a_restart(tmp_path: Path) -> None:
    """Send two signals to the first server, and a single signal to the second."""
    script = held_hello(tmp_path)
    server = Server(tmp_path / "data", "--engine", script.url).ready()
    try:
        with call(server) as busy:
            busy.send(create(model="held"))
            uid = json.loads(busy.recv(30))["response"]["id"]
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: "stopping; responses that run may take" in server.output)
            server.process.send_signal(signal.SIGTERM)
            with pytest.raises(ConnectionClosed) as gone:
                turn(busy)
            assert gone.value.rcvd is not None
            assert gone.value.rcvd.code == 1001
        assert server.process.wait(20) == 0
        assert "Traceback" not in server.output
        script.release()
        server = Server(tmp_path / "data", "--engine", script.url).ready()
        with client(server) as api:
            response = wait_until_ended(api, uid)
        assert (response.status, response.output_text) == ("completed", "Hello there!")
        stop_finishes_responses_and_closes_with_1001(server, script)
    finally:
        server.end()


@pytest.mark.parametrize(
    ("method", "status", "problem"), [("GET", 400, "Connection header"), ("POST", 405, 'HTTP method "POST"')]
)
def test_invalid_handshake_is_answered_with_an_error_object(shared: Server, method: str, status: int, problem: str) -> None:
    before = len(shared.log.read_bytes())
    answer = plain_http.request(method, f"{shared.url}/v1/responses", headers={"Upgrade": "websocket"})
    assert (answer.status_code, answer.headers.get("allow")) == (status, "GET" if status == 405 else None)
    assert problem in answer.json()["error"]["message"]
    assert answer.headers["x-request-id"].startswith("req_")
    # The end of the connection is logged before a later request is answered.
    assert plain_http.request("GET", f"{shared.url}/health").status_code == 200
    assert b"Traceback" not in shared.log.read_bytes()[before:]
