"""Health checks and metrics: `/health/live` for a supervisor, `/health/ready` for a load balancer, `/metrics` for Prometheus."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from secrets import compare_digest
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from responses_app.api.http import json_response
from responses_app.engine_interface import EngineError
from responses_app.errors import STORAGE_FULL, NotFound, Unauthorized
from responses_app.installation.data_dir import MANAGE
from responses_app.runs import manager
from responses_app.runs.manager import RunManager
from responses_app.runs.models import ServedModel
from responses_app.store.health import DatabaseHealth, DatabaseProbe
from responses_app.store.storage_report.storage_state import storage_state
from responses_app.tools import part_checks

logger = logging.getLogger("responses.health")

# Seconds in which each engine must answer.
ENGINE_LIMIT_S: Final = 4.0
READY, AWAY, LOADING, REMOVED = "ready", "away", "loading", "removed"
# Migrations that a message names.
MAX_NAMES: Final = 3
# No text of a problem is shown, as it can name folders and hosts.
DEGRADED: Final = {
    part_checks.SANDBOX: f"The sandbox fails: code and files are refused. `{MANAGE} doctor` and the log name the reason.",
    part_checks.FILES: f"The storage of files fails: uploads and files are refused. `{MANAGE} doctor` and the log name the reason.",
}
NO_MODELS: Final = "No model is served. Set RESPONSES_MODELS (name=engine-url)."

_probe: Final = DatabaseProbe()
# The parts that failed in the last answer: the log has a line for each change.
_failed: list[str] = []


@dataclass(frozen=True, slots=True)
class PartHealth:
    """Result of the check of a part: `problem` is a sentence, empty if the part works; `more` are further fields."""

    problem: str = ""
    more: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the fields of the part in the body."""
        status = {"status": "failed", "message": self.problem} if self.problem else {"status": "ok"}
        return {**status, **self.more}


async def live(request: HttpRequest) -> HttpResponseBase:
    """GET /health/live: 200 while the process answers, also while draining."""
    del request
    return json_response({"status": "live"})


async def ready(request: HttpRequest) -> HttpResponseBase:
    """GET /health/ready and GET /health: 200 if new requests can be served, else 503; the body names the failed parts."""
    del request
    hub = manager.current()
    is_warm = False
    if hub.services is not None:
        hub.services.warm_up.start()
        is_warm = hub.services.warm_up.is_done
    database, engine = await asyncio.gather(_probe.check(), _check_engines(hub))
    checks = {
        "database": PartHealth(database.problem),
        "migrations": _check_migrations(database),
        "storage": PartHealth(STORAGE_FULL if storage_state.is_full else ""),
        "engine": engine,
        "draining": PartHealth("The server is stopping." if hub.is_stopping or hub.is_leaving_soon else ""),
        "warm_up": PartHealth("" if is_warm else "The first prompt of each model is being made."),
    }
    failed = [name for name, check in checks.items() if check.problem]
    # Requests that need none of these parts are served.
    degraded = [part for part in DEGRADED if part in part_checks.problems]
    if not engine.problem and REMOVED in engine.more["models"].values():
        degraded.append("engine")
    checks |= {part: PartHealth(sentence if part in degraded else "") for part, sentence in DEGRADED.items()}
    _log_change(failed)
    shown = {name: check.as_json() for name, check in checks.items()}
    body = {"status": "not_ready" if failed else "ready", "failed": failed, "degraded": degraded, "checks": shown}
    return json_response(body, 503 if failed else 200, {"Cache-Control": "no-store"})


def _check_migrations(database: DatabaseHealth) -> PartHealth:
    if database.problem:
        return PartHealth("The database has not been asked.")
    missing = database.missing_migrations
    if not missing:
        return PartHealth()
    more = f" and {len(missing) - MAX_NAMES} more" if len(missing) > MAX_NAMES else ""
    return PartHealth(f"Not applied: {', '.join(missing[:MAX_NAMES])}{more}. Run {MANAGE} migrate.")


async def _check_engines(hub: RunManager) -> PartHealth:
    served = list(hub.served.values())
    states = await asyncio.gather(*(_engine_state(hub, model) for model in served))
    models = {model.name: state for model, state in zip(served, states, strict=True)}
    # A removed model is missing on all hosts of the engine: without it they serve the other models.
    has_others = any(state != REMOVED for state in models.values())
    away = [name for name, state in models.items() if state != READY and not (state == REMOVED and has_others)]
    problem = f"Not ready: {', '.join(away)}." if away else ""
    return PartHealth(problem if served else NO_MODELS, {"models": models})


async def _engine_state(hub: RunManager, model: ServedModel) -> str:
    if hub.opening or hub.services is None:
        return LOADING
    try:
        is_healthy = await asyncio.wait_for(model.engine.is_healthy(), ENGINE_LIMIT_S)
    except (TimeoutError, EngineError):
        return AWAY
    return READY if is_healthy else REMOVED if getattr(model.engine, "lacks_model", False) else AWAY


def _log_change(failed: Sequence[str]) -> None:
    """Log the failed parts, if these are others than at the last check."""
    if failed != _failed:
        _failed[:] = failed
        logger.info("ready" if not failed else "not ready: %s", *([", ".join(failed)] if failed else []))


async def metrics(request: HttpRequest) -> HttpResponseBase:
    """GET /metrics: the metrics of all processes of this host.

    Raises NotFound without RESPONSES_METRICS_TOKEN, Unauthorized for another token.
    """
    token: str = settings.RESPONSES_METRICS_TOKEN
    if not token:
        raise NotFound("Invalid URL (GET /metrics).")
    if not compare_digest(request.headers.get("Authorization", "").encode(), f"Bearer {token}".encode()):
        raise Unauthorized("The metrics need the header 'Authorization: Bearer TOKEN' with the token of the metrics.")
    # Imported only where metrics are on.
    from responses_app.observability import prometheus

    body = await asyncio.to_thread(prometheus.render, settings.RESPONSES_METRICS_DIR)
    return HttpResponse(body, content_type=prometheus.CONTENT_TYPE)
