"""Start of the observation of a serving process, as the settings say."""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings

from responses_app.observability import events


def start_observing(models: Iterable[str]) -> None:
    """Count for Prometheus if the metrics can be read: with RESPONSES_METRICS_PORT or RESPONSES_METRICS_TOKEN. Called once."""
    if settings.RESPONSES_METRICS_PORT or settings.RESPONSES_METRICS_TOKEN:
        # Imported only where metrics are on.
        from responses_app.observability import prometheus

        prometheus.use_files(settings.RESPONSES_METRICS_DIR)
        events.add_observer(prometheus.PrometheusObserver(models))
