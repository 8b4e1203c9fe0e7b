"""Metrics for Prometheus, in files of the data folder that all processes of a host share."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from responses_app.observability import slots
from responses_app.observability.endpoints import endpoint
from responses_app.observability.events import Observer
from responses_app.observability.records import EndedResponse, ObservedRequest
from responses_app.observability.value_files import ReservedValues

FOLDER: Final = "metrics"
CONTENT_TYPE: Final = prometheus_client.CONTENT_TYPE_LATEST
# Model of a response whose name is not among the served ones.
OTHER: Final = "other"
TOO_MANY_REQUESTS: Final = 429
# Upper bounds in seconds.
FIRST_TOKEN_S: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 10, 30, 60, 120)
TOKEN_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1)
DURATION_S: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800)
COMMIT_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30)
# Type of an item of the output -> kind of the tool.
TOOLS: Final[Mapping[str, str]] = {
    "mcp_call": "mcp",
    "code_interpreter_call": "code_interpreter",
    "web_search_call": "web_search",
    "file_search_call": "file_search",
    **dict.fromkeys(
        (
            "function_call",
            "custom_tool_call",
            "shell_call",
            "local_shell_call",
            "apply_patch_call",
            "computer_call",
            "tool_search_call",
        ),
        "function",
    ),
}


def use_files(folder: Path) -> None:
    """Keep the values of all metrics that this process makes from now on in files of `folder`. Called once, before the first metric."""
    slot = slots.take_slot(folder)
    # Read by the library whenever it opens a file.
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
    prometheus_client.values.MmapedDict = ReservedValues  # type: ignore[attr-defined]
    prometheus_client.values.ValueClass = prometheus_client.values.MultiProcessValue(lambda: slot)  # type: ignore[no-untyped-call]


class FileCollector(MultiProcessCollector):
    """Collector of the values of all processes, without the gauges of those that have died."""

    def __init__(self, registry: CollectorRegistry, folder: Path) -> None:
        super().__init__(registry, str(folder))  # type: ignore[no-untyped-call]
        self._folder = folder

    def collect(self) -> Iterable[Metric]:
        """Return the sums over all files (overrides the library, which counts the gauges of the dead until it is told)."""
        return self.merge(slots.current_files(self._folder), accumulate=True)  # type: ignore[no-any-return, no-untyped-call]


def file_registry(folder: Path) -> CollectorRegistry:
    """Return a registry with the values of all processes of `folder`."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    registry = CollectorRegistry()
    FileCollector(registry, folder)
    return registry


def serve(host: str, port: int, folder: Path) -> None:
    """Serve the metrics in a thread of this process. Raises OSError if the port cannot be opened."""
    prometheus_client.start_http_server(port, host, file_registry(folder))


def render(folder: Path) -> bytes:
    """Return the metrics of all processes in Prometheus's text format."""
    return generate_latest(file_registry(folder))


class PrometheusObserver(Observer):
    """Observer that counts. Each response and each request is observed once, and no token."""

    def __init__(self, models: Iterable[str], registry: CollectorRegistry | None = None) -> None:
        self._models = frozenset(models)
        to = registry or CollectorRegistry()
        self._requests = Counter(
            "verbatim_http_requests", "HTTP requests, by route and status.", ["endpoint", "code"], registry=to
        )
        self._responses = Counter("verbatim_responses", "Responses that have ended.", ["status", "model"], registry=to)
        self._first_token = Histogram(
            "verbatim_time_to_first_token_seconds",
            "Time from the start of a response to its first token.",
            ["model"],
            buckets=FIRST_TOKEN_S,
            registry=to,
        )
        self._token = Histogram(
            "verbatim_time_per_output_token_seconds",
            "Mean time between two tokens of a response, without prompts and tools.",
            ["model"],
            buckets=TOKEN_S,
            registry=to,
        )
        self._duration = Histogram(
            "verbatim_duration_seconds",
            "Time from the start of a response to its end.",
            ["model"],
            buckets=DURATION_S,
            registry=to,
        )
        self._queue = Histogram(
            "verbatim_queue_seconds", "Time that a response waits for its start.", buckets=DURATION_S, registry=to
        )
        self._in_flight = Gauge("verbatim_in_flight", "Responses that run now.", multiprocess_mode="livesum", registry=to)
        self._tokens = Counter("verbatim_tokens", "Tokens of responses that have ended.", ["type"], registry=to)
        self._commit = Histogram("verbatim_commit_seconds", "Time of a commit of events.", buckets=COMMIT_S, registry=to)
        self._tool_calls = Counter("verbatim_tool_calls", "Calls of tools, by kind.", ["tool", "outcome"], registry=to)
        self._takeovers = Counter("verbatim_takeovers", "Responses taken over from another process.", registry=to)
        self._rate_limited = Counter("verbatim_rate_limited", "Requests that a limit has refused.", registry=to)
        self._webhooks = Counter(
            "verbatim_webhook_attempts", "Attempts to deliver webhooks, by outcome.", ["outcome"], registry=to
        )
        self._embeddings = Counter(
            "verbatim_embedding_requests", "Requests to the embeddings server, by outcome.", ["outcome"], registry=to
        )
        self._sockets = Gauge("verbatim_open_websockets", "Open WebSockets.", multiprocess_mode="livesum", registry=to)
        self._engine_up = Gauge(
            "verbatim_engine_up",
            "1 if the engine answers health checks, else 0.",
            ["model", "engine"],
            multiprocess_mode="livemostrecent",
            registry=to,
        )
        self._part_up = Gauge(
            "verbatim_part_up",
            "1 if a part that only some requests need works, else 0.",
            ["part"],
            multiprocess_mode="livemostrecent",
            registry=to,
        )
        self._sessions = Gauge(
            "verbatim_postgres_sessions",
            "Sessions of the database by state, those of other hosts included.",
            ["state"],
            multiprocess_mode="livemostrecent",
            registry=to,
        )
        self._storage = Gauge(
            "verbatim_storage_bytes",
            "Bytes of the database, and free bytes of its disk.",
            ["kind"],
            multiprocess_mode="livemostrecent",
            registry=to,
        )
        self._waiting = Gauge(
            "verbatim_logs_waiting", "Logs that wait for archiving.", multiprocess_mode="livemostrecent", registry=to
        )
        self._oldest_wait = Gauge(
            "verbatim_log_wait_seconds", "Wait of the oldest log.", multiprocess_mode="livemostrecent", registry=to
        )
        self._storage_rate = Gauge(
            "verbatim_storage_rate",
            "Responses per second of the last minutes that were created, archived and deleted.",
            ["change"],
            multiprocess_mode="livemostrecent",
            registry=to,
        )
        # The look-up of a labelled child takes as long as the count.
        self._child = lru_cache(maxsize=4096)(lambda metric, *labels: metric.labels(*labels))

    def request_ended(self, record: ObservedRequest) -> None:
        """Count a request."""
        self._child(self._requests, endpoint(record), str(record.status)).inc()
        if record.status == TOO_MANY_REQUESTS:
            self._rate_limited.inc()

    def response_ended(self, record: EndedResponse) -> None:
        """Count a response, its tokens and its calls, and observe its times."""
        response, child = record.response, self._child
        model = response["model"] if response["model"] in self._models else OTHER
        child(self._responses, response["status"], model).inc()
        child(self._duration, model).observe(record.duration_s)
        if record.first_token_s is not None:
            child(self._first_token, model).observe(record.first_token_s)
        if record.token_s is not None:
            child(self._token, model).observe(record.token_s)
        if usage := response["usage"]:
            child(self._tokens, "input").inc(usage["input_tokens"])
            child(self._tokens, "cached_input").inc(usage["input_tokens_details"]["cached_tokens"])
            child(self._tokens, "output").inc(usage["output_tokens"])
            child(self._tokens, "reasoning").inc(usage["output_tokens_details"]["reasoning_tokens"])
        for item in response["output"]:
            if tool := TOOLS.get(item["type"]):
                failed = item.get("error") or item.get("status") in ("failed", "incomplete")
                child(self._tool_calls, tool, "failed" if failed else "completed").inc()

    def runs_changed(self, count: int) -> None:
        """Set the number of responses that run."""
        self._in_flight.set(count)

    def sockets_changed(self, count: int) -> None:
        """Set the number of open WebSockets."""
        self._sockets.set(count)

    def started(self, waited_s: float) -> None:
        """Observe the wait of a start. It is negative if the host that queued the response has a clock that is ahead."""
        self._queue.observe(max(waited_s, 0.0))

    def committed(self, seconds: float) -> None:
        """Observe a commit."""
        self._commit.observe(seconds)

    def taken_over(self) -> None:
        """Count a take-over."""
        self._takeovers.inc()

    def rate_limited(self) -> None:
        """Count a refused request of a WebSocket."""
        self._rate_limited.inc()

    def webhook_sent(self, *, is_success: bool) -> None:
        """Count an attempt to deliver a webhook."""
        self._child(self._webhooks, "accepted" if is_success else "failed").inc()

    def texts_embedded(self, *, is_success: bool) -> None:
        """Count a request to the embeddings server."""
        self._child(self._embeddings, "completed" if is_success else "failed").inc()

    def engines_checked(self, states: Mapping[tuple[str, str], bool]) -> None:
        """Set the state of each engine, by model and by host and port."""
        for (model, engine), is_up in states.items():
            self._child(self._engine_up, model, engine).set(is_up)

    def parts_checked(self, states: Mapping[str, bool]) -> None:
        """Set the state of each part."""
        for part, is_up in states.items():
            self._child(self._part_up, part).set(is_up)

    def sessions_counted(self, counts: Mapping[str, int]) -> None:
        """Set the number of sessions of the database, by state."""
        for state, number in counts.items():
            self._child(self._sessions, state).set(number)

    def storage_measured(self, values: Mapping[str, float]) -> None:
        """Set the values of the storage report."""
        self._waiting.set(values["waiting"])
        self._oldest_wait.set(values["oldest_wait_s"])
        for kind in ("database", "free"):
            if kind in values:
                self._child(self._storage, kind).set(values[kind])
        for change in ("created", "archived", "deleted"):
            if change in values:
                self._child(self._storage_rate, change).set(values[change])
