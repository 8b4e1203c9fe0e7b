"""Metrics of responses: tokens, calls of tools by kind and outcome, and models that are not served."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from responses_app.observability import events
from responses_app.observability.prometheus import TOOLS, PrometheusObserver
from responses_app.observability.records import EndedResponse, ObservedRequest
from responses_app.protocol.items.registry import FAMILIES

USAGE = {
    "input_tokens": 50,
    "input_tokens_details": {"cached_tokens": 30},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 5},
}


class Metrics:
    """Observer with a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.observer = PrometheusObserver(["m"], self.registry)

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)

    def end(self, model: str = "m", status: str = "completed", usage: Any = None, output: Any = ()) -> None:
        response = {"model": model, "status": status, "usage": usage, "output": output}
        self.observer.response_ended(EndedResponse(response, 2.0, 0.5, None))


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def test_tokens_are_counted_by_type(metrics: Metrics) -> None:
    metrics.end(usage=USAGE)
    metrics.end(usage=USAGE)
    metrics.end(usage=None)
    counts = {
        kind: metrics.value("verbatim_tokens_total", type=kind) for kind in ("input", "cached_input", "output", "reasoning")
    }
    assert counts == {"input": 100, "cached_input": 60, "output": 40, "reasoning": 10}


def test_the_sum_of_waits_never_falls(metrics: Metrics) -> None:
    for waited_s in (2.0, -300.0):
        metrics.observer.started(waited_s)
    assert (metrics.value("verbatim_queue_seconds_sum"), metrics.value("verbatim_queue_seconds_count")) == (2.0, 2.0)


def test_calls_are_counted_by_kind_and_outcome(metrics: Metrics) -> None:
    output = [
        {"type": "message", "status": "completed"},
        {"type": "mcp_list_tools", "error": "away"},
        {"type": "mcp_call", "status": "completed", "error": None},
        {"type": "mcp_call", "status": "failed", "error": {"type": "http_error"}},
        {"type": "code_interpreter_call", "status": "failed"},
        {"type": "function_call", "status": "completed"},
        {"type": "custom_tool_call", "status": "incomplete"},
    ]
    metrics.end(output=output)
    samples = next(family for family in metrics.registry.collect() if family.name == "verbatim_tool_calls").samples
    counts = {tuple(sample.labels.values()): sample.value for sample in samples if sample.name.endswith("_total")}
    assert counts == {
        ("mcp", "completed"): 1,
        ("mcp", "failed"): 1,
        ("code_interpreter", "failed"): 1,
        ("function", "completed"): 1,
        ("function", "failed"): 1,
    }


def test_every_call_of_the_protocol_has_a_kind() -> None:
    calls = {name for name in FAMILIES if name.endswith("_call")}
    assert set(TOOLS) == calls - {"image_generation_call"}, "no tool of this server makes images"


def test_model_that_is_not_served_has_a_common_label(metrics: Metrics) -> None:
    for model in ("m", "gone", "text of a client"):
        metrics.end(model, "failed")
    assert metrics.value("verbatim_responses_total", status="failed", model="m") == 1
    assert metrics.value("verbatim_responses_total", status="failed", model="other") == 2
    assert metrics.value("verbatim_duration_seconds_sum", model="other") == 4


def test_refusals_by_a_limit_are_counted_over_http_and_websockets(metrics: Metrics) -> None:
    metrics.observer.request_ended(ObservedRequest("POST", "/v1/responses", 429))
    metrics.observer.request_ended(ObservedRequest("POST", "/v1/responses", 503))
    metrics.observer.rate_limited()
    assert metrics.value("verbatim_rate_limited_total") == 2
    assert metrics.value("verbatim_http_requests_total", endpoint="/v1/responses", code="503") == 1


def test_webhooks_and_embeddings_are_counted_by_outcome(metrics: Metrics) -> None:
    events.add_observer(metrics.observer)
    try:
        for is_success in (True, False, False):
            events.webhook_sent(is_success=is_success)
            events.texts_embedded(is_success=is_success)
    finally:
        events.close()
    assert metrics.value("verbatim_webhook_attempts_total", outcome="accepted") == 1
    assert metrics.value("verbatim_webhook_attempts_total", outcome="failed") == 2
    assert metrics.value("verbatim_embedding_requests_total", outcome="completed") == 1
    assert metrics.value("verbatim_embedding_requests_total", outcome="failed") == 2


def test_defect_of_an_observer_harms_nothing(metrics: Metrics, caplog: pytest.LogCaptureFixture) -> None:
    events.add_observer(metrics.observer)
    try:
        events.response_ended(EndedResponse({}, 0.0, None, None))
        events.taken_over()
    finally:
        events.close()
    assert metrics.value("verbatim_takeovers_total") == 1
    assert not events.is_observed()
    assert "an observer failed" in caplog.text
