"""Traces for OpenTelemetry. This module needs the extra `otel`, so that only `start` imports it, and only where traces are on."""

from __future__ import annotations

import threading
import time
from dataclasses import asdict, is_dataclass
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from responses_app.observability import genai
from responses_app.observability.endpoints import endpoint
from responses_app.observability.events import Observer
from responses_app.observability.records import EndedCall, EndedRound, ObservedRequest
from responses_app.utils.url_prefix import local_path

# Requests of other paths, such as pages, have no span.
TRACED: Final = ("/v1/", "/openresponses/v1/")
METHODS: Final = frozenset({"GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH", "WEBSOCKET"})
SERVER_ERROR: Final = 500
# Seconds in which the last spans are sent at the end of a process.
CLOSE_LIMIT_S: Final = 3.0
SCOPE: Final = "verbatim"
_PROPAGATOR: Final = TraceContextTextMapPropagator()


def make_observer(*, with_content: bool) -> TracingObserver:
    """Return an observer that sends spans to OTEL_EXPORTER_OTLP_ENDPOINT by OTLP over HTTP. The SDK reads more variables."""
    resource = Resource.create()
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: SCOPE}))
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return TracingObserver(provider, with_content=with_content)


class TracingObserver(Observer):
    """Observer that makes a span for each request of the API, and spans below it for rounds and for calls of tools."""

    def __init__(self, provider: TracerProvider, *, with_content: bool) -> None:
        self._provider, self._with_content = provider, with_content
        self._tracer = provider.get_tracer(SCOPE)

    def request_began(self, record: ObservedRequest) -> None:
        """Begin the span of a request, in the trace of the caller or in a new one, and let the record name it as the parent."""
        if not local_path(record.path).startswith(TRACED) or record.method not in METHODS:
            return
        span = self._tracer.start_span(record.method, _context(record.traceparent), SpanKind.SERVER)
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier, set_span_in_context(span, Context()))
        record.span, record.traceparent = span, carrier["traceparent"]

    def request_ended(self, record: ObservedRequest) -> None:
        """End the span of a request."""
        span = record.span
        if span is None:
            return
        route = endpoint(record)
        span.update_name(f"{record.method} {route}")
        span.set_attributes(
            {"http.request.method": record.method, "http.route": route, "http.response.status_code": record.status}
        )
        if record.status >= SERVER_ERROR:
            span.set_attribute("error.type", str(record.status))
            span.set_status(StatusCode.ERROR)
        if record.response is not None:
            response = record.response()
            span.set_attributes(genai.response_attributes(response))
            # A stream that fails has the status 200.
            if response["status"] == "failed" and record.status < SERVER_ERROR:
                span.set_attribute("error.type", response["error"]["code"])
                span.set_status(StatusCode.ERROR)
            if self._with_content:
                span.set_attributes(genai.content_attributes(response, record.request_input))
        span.end()

    def socket_request_ended(self, record: ObservedRequest) -> None:
        """End the span of a request on a WebSocket."""
        self.request_ended(record)

    def round_ended(self, ended: EndedRound) -> None:
        """Make the span of a round of generation."""
        attributes: genai.Attributes = {
            genai.OPERATION_NAME: genai.CHAT,
            genai.PROVIDER_NAME: genai.PROVIDER,
            genai.REQUEST_MODEL: ended.response["model"],
            genai.RESPONSE_ID: ended.response["id"],
            genai.RESPONSE_FINISH_REASONS: [ended.finish or "error"],
            **genai.usage_attributes(ended.usage),
        }
        self._add(f"{genai.CHAT} {ended.response['model']}", ended, attributes, is_error=ended.finish is None)

    def call_ended(self, ended: EndedCall) -> None:
        """Make the span of a call of a server tool."""
        item, result = ended.item, ended.result
        is_error = bool(getattr(result, "error", None) or getattr(result, "failed", False))
        attributes: genai.Attributes = {
            genai.OPERATION_NAME: genai.EXECUTE_TOOL,
            genai.TOOL_NAME: ended.name,
            genai.TOOL_TYPE: genai.EXTENSION,
            genai.TOOL_CALL_ID: item["id"],
        }
        if self._with_content:
            attributes[genai.TOOL_ARGUMENTS] = str(item.get("arguments") or item.get("code") or "")
            attributes[genai.TOOL_RESULT] = str(
                asdict(result) if is_dataclass(result) and not isinstance(result, type) else result
            )
        self._add(f"{genai.EXECUTE_TOOL} {ended.name}", ended, attributes, is_error=is_error)

    def close(self) -> None:
        """Send the last spans, within CLOSE_LIMIT_S seconds: a collector that is away delays no end."""
        closing = threading.Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        closing.join(CLOSE_LIMIT_S)

    def _add(self, name: str, ended: EndedRound | EndedCall, attributes: genai.Attributes, *, is_error: bool) -> None:
        """Add a span below that of the request, from the begin of `ended` until now. Without a trace there is no span."""
        if not ended.traceparent:
            return
        span = self._tracer.start_span(
            name, _context(ended.traceparent), SpanKind.INTERNAL, attributes, start_time=ended.began_ns
        )
        if is_error:
            span.set_attribute("error.type", "_OTHER")
            span.set_status(StatusCode.ERROR)
        span.end(time.time_ns())


def _context(traceparent: str) -> Context:
    carrier: dict[str, Any] = {"traceparent": traceparent} if traceparent else {}
    return _PROPAGATOR.extract(carrier, Context())
