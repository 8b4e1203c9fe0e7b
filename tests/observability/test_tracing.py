"""Spans of requests, rounds and calls of tools, with and without content, and a start without the extra."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from websockets.sync.client import connect

from responses_app.engines.replay.tape import Fault, Hold, Recording, Tokens
from responses_app.installation.data_dir import ROOT
from responses_app.observability import events, genai
from responses_app.observability.records import ObservedRequest, current_request
from responses_app.observability.tracing import TracingObserver
from responses_app.runs import manager
from tests.support import plain_http
from tests.support.api.case import HELLO, KeyedClient, record_text
from tests.support.api.mcp_case import McpCase
from tests.support.http_server import SilentHandler, http_server, serving
from tests.support.server.serve_command import Server
from tests.support.waiting import eventually, wait_until


class TraceReceiver:
    """Received spans, and the names of the services."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.services: set[str] = set()
        self.url = ""

    def add(self, body: bytes) -> None:
        """Add the spans of a request."""
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            names = [one.value.string_value for one in resource.resource.attributes if one.key == "service.name"]
            self.services.update(names)
            self.spans += [span for scope in resource.scope_spans for span in scope.spans]

    def named(self, name: str) -> list[Any]:
        """Return the spans with a name."""
        return [span for span in self.spans if span.name == name]


@contextmanager
def trace_receiver() -> Iterator[TraceReceiver]:
    """Run a collector."""
    receiver = TraceReceiver()

    class PostHandler(SilentHandler):
        def do_POST(self) -> None:
            receiver.add(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(ExportTraceServiceResponse().SerializeToString())

    with serving(http_server(PostHandler)) as server:
        receiver.url = f"http://127.0.0.1:{server.server_port}"
        yield receiver


TRACE_ID: Final = "0af7651916cd43dd8448eb211c80319c"
PARENT: Final = f"00-{TRACE_ID}-b7ad6b7169203331-01"
DELETE: Final = '<|channel|>commentary to=functions.files__delete <|constrain|>json<|message|>{"path":"a.txt"}<|call|>'
LISTING: Final = "execute_tool mcp_list_tools"
SECRET: Final = "the secret of the client"


class TracingTest(McpCase):
    """A response with a call of an MCP tool, and so two rounds. The spans stay in memory."""

    def spans(self, *, with_content: bool) -> InMemorySpanExporter:
        """Observe this process up to the end of the test."""
        exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        events.add_observer(TracingObserver(provider, with_content=with_content))
        self.addCleanup(events.close)
        return exporter

    async def traced(self, client: KeyedClient, **body: Any) -> tuple[ObservedRequest, dict[str, Any]]:
        """Make a request in the trace of a caller, as the ASGI application does."""
        headers = [(b"traceparent", PARENT.encode())]
        record = ObservedRequest.of_scope("POST", {"path": "/v1/responses", "headers": headers})
        current_request.set(record)
        events.request_began(record)
        tool = {**self.tool, "require_approval": "never"}
        response = await self.post(client, tools=[tool], instructions=SECRET, **body)
        ended = {"events": await self.read(response)} if body.get("stream") else response.json()
        record.status = response.status_code
        events.request_ended(record)
        current_request.set(None)
        return record, ended

    async def test_request_has_spans_of_its_rounds_and_calls(self) -> None:
        exporter = self.spans(with_content=False)
        async with self.serving(record_text(DELETE), record_text(HELLO)) as client:
            record, response = await self.traced(client, max_output_tokens=500)
            sent = [request.traceparent for request in self.engine.requests]
        spans = exporter.get_finished_spans()
        server = next(span for span in spans if span.kind is SpanKind.SERVER)
        assert server.context is not None
        assert server.parent is not None
        self.assertEqual((server.name, f"{server.context.trace_id:032x}"), ("POST /v1/responses", TRACE_ID))
        self.assertEqual(f"{server.parent.span_id:016x}", PARENT.split("-")[2])
        self.assertEqual(sent, [record.traceparent] * 2, "the engine gets the span of the request as the parent")
        self.assertEqual(record.traceparent, f"00-{TRACE_ID}-{server.context.span_id:016x}-01")
        self.assertEqual(
            attributes(server),
            {
                "http.request.method": "POST",
                "http.route": "/v1/responses",
                "http.response.status_code": 200,
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "verbatim",
                "gen_ai.request.model": "m",
                "gen_ai.response.model": "m",
                "gen_ai.response.id": response["id"],
                "gen_ai.response.finish_reasons": ("stop",),
                "gen_ai.request.max_tokens": 500,
                "gen_ai.request.temperature": response["temperature"],
                "gen_ai.request.top_p": response["top_p"],
                "gen_ai.output.type": "text",
                "gen_ai.usage.input_tokens": response["usage"]["input_tokens"],
                "gen_ai.usage.cache_read.input_tokens": 0,
                "gen_ai.usage.output_tokens": response["usage"]["output_tokens"],
                "gen_ai.usage.reasoning.output_tokens": 0,
            },
        )
        below = [span for span in spans if span.parent is not None and span.parent.span_id == server.context.span_id]
        self.assertEqual(sorted(span.name for span in below), ["chat m", "chat m", "execute_tool delete", LISTING])
        rounds = [attributes(span) for span in below if span.name == "chat m"]
        self.assertEqual(sum(one[genai.OUTPUT_TOKENS] for one in rounds), response["usage"]["output_tokens"])
        (call,) = [attributes(span) for span in below if span.name == "execute_tool delete"]
        self.assertEqual(call[genai.TOOL_CALL_ID], next(one["id"] for one in response["output"] if one["type"] == "mcp_call"))
        for span in spans:
            text = str(attributes(span))
            self.assertNotIn(SECRET, text)
            self.assertNotIn("a.txt", text)
            self.assertNotIn("Hello", text)

    async def test_content_is_recorded_where_it_is_asked_for(self) -> None:
        exporter = self.spans(with_content=True)
        async with self.serving(record_text(DELETE), record_text(HELLO)) as client:
            await self.traced(client, input="What is new?")
        spans = {span.name: attributes(span) for span in exporter.get_finished_spans()}
        server, call = spans["POST /v1/responses"], spans["execute_tool delete"]
        self.assertEqual(json.loads(server[genai.SYSTEM_INSTRUCTIONS]), [{"type": "text", "content": SECRET}])
        user = {"role": "user", "parts": [{"type": "text", "content": "What is new?"}]}
        self.assertEqual(json.loads(server[genai.INPUT_MESSAGES]), [user])
        answer = {"role": "assistant", "parts": [{"type": "text", "content": "Hello there!"}]}
        self.assertEqual(json.loads(server[genai.OUTPUT_MESSAGES])[-1], answer)
        self.assertEqual(call[genai.TOOL_ARGUMENTS], '{"path":"a.txt"}')
        self.assertIn("deleted a.txt", call[genai.TOOL_RESULT])

    async def test_server_error_is_an_error_of_the_span(self) -> None:
        exporter = self.spans(with_content=False)
        async with self.serving() as client:
            await self.hub.start()
            self.engine.fail_for()
            await self.traced(client)
        (span,) = exporter.get_finished_spans()
        self.assertEqual((span.status.status_code, attributes(span)["error.type"]), (StatusCode.ERROR, "503"))

    async def test_stream_that_fails_is_an_error_of_the_span(self) -> None:
        exporter = self.spans(with_content=False)
        async with self.serving(Recording([Fault("bad", "no")])) as client:
            _, ended = await self.traced(client, stream=True)
        self.assertEqual(ended["events"][-1]["type"], "response.failed")
        spans = {span.name: span for span in exporter.get_finished_spans()}
        for name, error in (("POST /v1/responses", ended["events"][-1]["response"]["error"]["code"]), ("chat m", "_OTHER")):
            self.assertEqual((spans[name].status.status_code, attributes(spans[name])["error.type"]), (StatusCode.ERROR, error))

    async def test_cancelled_round_is_no_error_and_a_running_response_has_no_finish_reason(self) -> None:
        exporter = self.spans(with_content=False)
        gate = Path(self.enterContext(tempfile.TemporaryDirectory())) / "gate"
        async with self.serving(Recording([Tokens([1]), Hold(gate)])) as client:
            _, response = await self.traced(client, background=True)
            await eventually(lambda: not self.engine.left)
            self.assertEqual((await client.post(f"/v1/responses/{response['id']}/cancel")).status_code, 200)
        spans = {span.name: span for span in exporter.get_finished_spans()}
        self.assertNotIn(genai.RESPONSE_FINISH_REASONS, attributes(spans["POST /v1/responses"]))
        self.assertEqual(spans["chat m"].status.status_code, StatusCode.UNSET)
        self.assertEqual(attributes(spans["chat m"])[genai.RESPONSE_FINISH_REASONS], ("cancelled",))

    async def test_round_in_another_process_is_in_the_trace_of_the_request(self) -> None:
        exporter = self.spans(with_content=False)
        gate = Path(self.enterContext(tempfile.TemporaryDirectory())) / "gate"
        async with self.serving(Recording([Tokens([1]), Hold(gate)]), record_text(HELLO)) as client:
            record, response = await self.traced(client, background=True)
            await eventually(lambda: len(self.engine.left) == 1)
            await self.crash()
            await self.hub.close()
            await self.engine.start()
            before = exporter.get_finished_spans()
            self.hub = self.new_hub()
            manager.set_current(self.hub)
            await self.hub.start()
            self.judge(await self.read(await client.get(f"/v1/responses/{response['id']}?stream=true")))
        (continued,) = exporter.get_finished_spans()[len(before) :]
        assert continued.parent is not None
        self.assertEqual(f"00-{continued.parent.trace_id:032x}-{continued.parent.span_id:016x}-01", record.traceparent)
        self.assertEqual((continued.name, attributes(continued)[genai.RESPONSE_ID]), ("chat m", response["id"]))


def attributes(span: ReadableSpan) -> dict[str, Any]:
    values: Mapping[str, Any] = span.attributes or {}
    return dict(values)


def test_names_of_the_conventions_are_in_one_file() -> None:
    named = [file for file in (ROOT / "responses_app").rglob("*.py") if '"gen_ai.' in file.read_text()]
    assert named == [Path(genai.__file__)]


@pytest.fixture
def traced(tmp_path: Path, tape: str) -> Iterator[tuple[Server, Any]]:
    """Run a server that sends its spans to a collector."""
    with trace_receiver() as receiver:
        server = Server(
            tmp_path / "data",
            "--engine",
            tape,
            "--web",
            "2",
            OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url,
            OTEL_BSP_SCHEDULE_DELAY="100",
        )
        yield server.ready(), receiver
        server.end()


def test_server_sends_spans_of_http_and_websocket(traced: tuple[Server, Any]) -> None:
    server, receiver = traced
    assert server.ask().status_code == 200
    assert plain_http.get(f"{server.url}/health").status_code in (200, 503)
    headers = {"Authorization": f"Bearer {server.key}", "traceparent": PARENT}
    with connect(f"ws://127.0.0.1:{server.port}/v1/responses", additional_headers=headers) as socket:
        socket.send(json.dumps({"type": "response.create", "model": "tape", "input": "Hi"}))
        while json.loads(socket.recv())["type"] != "response.completed":
            pass
    wait_until(lambda: receiver.named("WEBSOCKET /v1/responses") and receiver.named("POST /v1/responses"))
    wait_until(lambda: len(receiver.named("chat tape")) == 2)
    (socket_span,) = receiver.named("WEBSOCKET /v1/responses")
    assert socket_span.trace_id.hex() == TRACE_ID
    (http_span,) = receiver.named("POST /v1/responses")
    assert not http_span.parent_span_id
    assert {span.parent_span_id for span in receiver.named("chat tape")} == {socket_span.span_id, http_span.span_id}
    assert receiver.services == {"verbatim"}
    assert {span.name for span in receiver.spans} == {"WEBSOCKET /v1/responses", "POST /v1/responses", "chat tape"}


def test_last_spans_are_sent_at_the_end(tmp_path: Path, tape: str) -> None:
    with trace_receiver() as receiver:
        environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_SERVICE_NAME": "mine"}
        before = ["env", *(f"{name}={value}" for name, value in environ.items())]
        with Server(tmp_path / "data", "--engine", tape, before=before) as server:
            assert server.ready().ask().status_code == 200
            assert server.stop() == 0
        assert len(receiver.named("POST /v1/responses")) == 1
        assert receiver.services == {"mine"}


def test_start_without_the_extra_logs_a_sentence(tmp_path: Path, tape: str) -> None:
    hidden = tmp_path / "hidden" / "opentelemetry" / "exporter"
    hidden.mkdir(parents=True)
    # A package without the exporter stands before the installed package, which keeps its other parts.
    (hidden / "__init__.py").write_text("")
    (hidden.parent / "__init__.py").write_text("__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n")
    with Server(
        tmp_path / "data",
        *("--engine", tape),
        OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9",
        PYTHONPATH=str(hidden.parents[1]),
    ) as server:
        assert server.ready().ask(store=False).status_code == 200
        assert "no traces are sent. Install the extra otel" in server.output
        assert "Traceback" not in server.output
