"""Start of the observation of a serving process, as the settings say."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from django.conf import settings

from responses_app.observability import events
from responses_app.observability.access_log import AccessLog
from responses_app.observability.engine_log import EngineLog

logger = logging.getLogger("responses.serve")


def start_observing(models: Iterable[str]) -> None:
    """Log each request, count for Prometheus if the metrics can be read, and send traces if there is a collector. Called once."""
    events.add_observer(AccessLog())
    events.add_observer(EngineLog())
    if settings.RESPONSES_METRICS_PORT or settings.RESPONSES_METRICS_TOKEN:
        # Imported only where metrics are on.
        from responses_app.observability import prometheus

        try:
            prometheus.use_files(settings.RESPONSES_METRICS_DIR)
            events.add_observer(prometheus.PrometheusObserver(models))
        except OSError as error:
            logger.error("nothing is counted for the metrics: %s. Free space in the data folder and restart", error)
    if settings.RESPONSES_OTEL_ENDPOINT:
        _trace()


def _trace() -> None:
    """Send traces. Without the extra `otel`, log a sentence instead."""
    try:
        from responses_app.observability import tracing
    except ModuleNotFoundError as error:
        logger.warning(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, but %s is not installed: no traces are sent. Install the extra otel",
            error.name,
        )
        return
    events.add_observer(tracing.make_observer(with_content=settings.RESPONSES_OTEL_CONTENT))
