"""Start of the observation of a serving process, as the settings say."""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings

from responses_app.observability import events
from responses_app.observability.access_log import AccessLog


def start_observing(models: Iterable[str]) -> None:
    """Log each request, and count for Prometheus if the metrics can be read: by a port or a token. Called once."""
    events.add_observer(AccessLog())
    if settings.RESPONSES_METRICS_PORT or settings.RESPONSES_METRICS_TOKEN:
        # Imported only where metrics are on.
        from responses_app.observability import prometheus

        prometheus.use_files(settings.RESPONSES_METRICS_DIR)
        events.add_observer(prometheus.PrometheusObserver(models))
