"""A line for each request, in text and in JSON, and the ids that reach the engine."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

from responses_app.observability.records import ObservedRequest, parse_tracestate
from responses_app.server.cli.model_specs import HARMONY
from tests.support import plain_http
from tests.support.api.case import tokens
from tests.support.engines.faulty_http_server import FaultyServer, serve, stream, token
from tests.support.server.serve_command import Server
from tests.support.waiting import wait_until

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
TRACE = {"traceparent": f"00-{TRACE_ID}-b7ad6b7169203331-01"}
STATE = {"tracestate": "vendor=opaque, other=1"}
HELLO = tokens("<|channel|>final<|message|>A secret answer<|return|>")


def lines_of(server: Server) -> list[dict[str, Any]]:
    """Return the lines of requests in a log in JSON."""
    records = [json.loads(line) for line in server.output.splitlines() if line.startswith("{")]
    return [record for record in records if record["logger"] == "responses.access"]


def wait_for_line(server: Server, **fields: object) -> dict[str, Any]:
    """Wait for a line with these fields."""

    def matching() -> list[dict[str, Any]]:
        return [line for line in lines_of(server) if fields.items() <= line.items()]

    wait_until(matching, explain=lambda: server.output)
    (line,) = matching()
    return line


def check_http(server: Server, engine: FaultyServer) -> None:
    headers = {"Authorization": f"Bearer {server.key}", **TRACE, **STATE, "X-Client-Request-Id": "mine\x1b 1"}
    body = {"model": "m", "input": "A secret question"}
    answer = plain_http.post(f"{server.url}/v1/responses", json=body, headers=headers, timeout=180)
    assert answer.status_code == 200, answer.text
    request_id, uid = answer.headers["x-request-id"], answer.json()["id"]
    line = wait_for_line(server, request_id=request_id)
    assert {**line, "time": "", "ms": 0} == {
        "time": "",
        "level": "INFO",
        "logger": "responses.access",
        "method": "POST",
        "route": "/v1/responses",
        "status": 200,
        "ms": 0,
        "request_id": request_id,
        "response_id": uid,
        "key_id": 1,
        "project": "default",
        "model": "m",
        "engine": engine.url.removeprefix("http://"),
        "client_request_id": "mine\x1b 1",
        "client": "127.0.0.1",
        "trace_id": TRACE_ID,
    }
    (head,) = [head for head in engine.headers if head.startswith("POST /inference/v1/generate")]
    sent = {name.lower(): value for name, _, value in (row.partition(": ") for row in head.split("\r\n"))}
    assert sent["x-request-id"] == f"{request_id}-{uid}", "vLLM writes this id into its log"
    assert (sent["traceparent"], sent["tracestate"]) == (TRACE["traceparent"], STATE["tracestate"])


def check_socket(server: Server) -> None:
    url = f"ws://127.0.0.1:{server.port}/v1/responses"
    with connect(url, additional_headers={"Authorization": f"Bearer {server.key}"}) as socket:
        for model in ("m", "unknown"):
            socket.send(json.dumps({"type": "response.create", "model": model, "input": "Hi"}))
            while (event := json.loads(socket.recv()))["type"] not in ("response.completed", "error"):
                pass
            status = 200 if model == "m" else event["status"]
            line = wait_for_line(server, method="WEBSOCKET", status=status)
            assert line.get("response_id", "") == (event["response"]["id"] if model == "m" else "")
    wait_for_line(server, method="GET", route="/v1/responses", status=101)


def check_refused(server: Server) -> None:
    answer = plain_http.post(f"{server.url}/v1/responses", json={"model": "m"}, headers={"Authorization": "Bearer sk-wrong"})
    line = wait_for_line(server, status=401)
    assert (line["route"], line["request_id"]) == ("/v1/responses", answer.headers["x-request-id"])
    assert plain_http.get(f"{server.url}/health/live").status_code == 200
    page = plain_http.get(f"{server.url}/responses/resp_1", headers={"traceparent": "00-bad"})
    assert page.status_code == 302
    line = wait_for_line(server, route="/responses/{uid}")
    assert line["request_id"] == page.headers["x-request-id"], "pages have an id too"
    assert "trace_id" not in line
    assert [line for line in lines_of(server) if line["route"].startswith("/health")] == [], "probes are logged as DEBUG"


def test_every_request_has_a_line_in_json_with_its_ids(tmp_path: Path) -> None:
    async def run() -> None:
        answer = stream(*(token(number) for number in HELLO[:-1]), token(HELLO[-1], "stop"), b"[DONE]")
        async with serve(answer) as engine:
            model = f"m={engine.url}?model=m&max_model_len=512&tokenizer={HARMONY}"
            server = Server(tmp_path / "data", RESPONSES_MODELS=model, RESPONSES_LOG_FORMAT="json")
            try:
                await asyncio.to_thread(server.ready)
                await asyncio.to_thread(check_http, server, engine)
                await asyncio.to_thread(check_socket, server)
                await asyncio.to_thread(check_refused, server)
            finally:
                await asyncio.to_thread(server.end)
            assert "secret" not in server.output
            assert server.key not in server.output

    asyncio.run(run())


def test_line_of_text_has_the_same_ids(shared: Server) -> None:
    body = {"model": "tape", "input": "Hi", "store": False}
    headers = {"Authorization": f"Bearer {shared.key}", "X-Client-Request-Id": "a model=forged", **TRACE}
    answer = plain_http.post(f"{shared.url}/v1/responses", json=body, headers=headers, timeout=180)
    ids = f"request_id={answer.headers['x-request-id']} response_id={answer.json()['id']}"

    def matching() -> list[str]:
        return [line for line in shared.output.splitlines() if ids in line]

    wait_until(matching, explain=lambda: shared.output)
    (line,) = matching()
    assert "INFO    responses.access: POST /v1/responses 200 " in line
    rest = "project=default model=tape engine=local client_request_id=a_model=forged client=127.0.0.1"
    assert line.endswith(f"{rest} trace_id={TRACE_ID}")


def test_state_of_a_trace_needs_a_trace_and_printable_characters() -> None:
    assert [parse_tracestate(values) for values in (["a=1", "b=2"], ["a=\x7f"], ["x" * 513], [])] == ["a=1,b=2", "", "", ""]
    scope = {"path": "/", "headers": [(b"tracestate", b"a=1")]}
    assert ObservedRequest.of_scope("GET", scope).tracestate == ""
