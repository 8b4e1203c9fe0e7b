"""Checks of the served models: each engine of RESPONSES_MODELS is reached, no engine is started."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

import httpx2
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from responses_app.engine_interface import EngineUnavailable, EngineUnreachable
from responses_app.engines.http.client import KEY_REFUSED
from responses_app.engines.http.codec import parse_models
from responses_app.engines.socket.client import SocketEngine
from responses_app.engines.urls import location, split_urls
from responses_app.installation.data_dir import SERVE, data_dir, running_server
from responses_app.outbound_http.certificates import TRUST, certificate_problem, default_ssl_context
from responses_app.runs.models import models_from_settings
from responses_app.server.bootstrap.installed import describe_missing_libraries
from responses_app.server.doctor.findings import FAILED, OK, WARNING, Check, CheckResults

LIMIT_S: Final = 5.0
NO_MODELS: Final = f"RESPONSES_MODELS is empty. {SERVE} sets it from --model; for another ASGI server, set name=engine-url."

COMMAND_LINE: Final = (
    "The server that runs (process {}) has its models from its command line. Its /health/ready names the engine of each."
)


def checks() -> list[tuple[str, Check]]:
    """Return the checks of engines."""
    return [("models", check_models), ("engines", check_engines)]


def check_models() -> CheckResults:
    """Check RESPONSES_MODELS, and the aliases and limits that name models."""
    if not settings.RESPONSES_MODELS.strip():
        server = running_server(data_dir())
        yield (WARNING, NO_MODELS) if server is None else (OK, COMMAND_LINE.format(server))
        return
    try:
        models, _ = models_from_settings()
    except (ImproperlyConfigured, ValueError, OSError) as error:
        yield FAILED, f"The models cannot be used: {error}."
    else:
        yield OK, f"{len(models)} model{'s' * (len(models) > 1)}: {', '.join(models)}."
    if "=vllm:" in settings.RESPONSES_MODELS and (missing := describe_missing_libraries()):
        yield FAILED, f"{missing}."


def check_engines() -> CheckResults:
    """Check that the engine of each URL answers; no engine is started."""
    for entry in settings.RESPONSES_MODELS.split():
        name, _, text = entry.partition("=")
        for url in split_urls(text):
            problem = engine_problem(url)
            place = location(url)
            if problem:
                yield FAILED, f"The engine of {name} at {place} {problem}"
            else:
                yield OK, f"The engine of {name} at {place} can be used."


def engine_problem(url: str) -> str | None:
    """Return why the engine of `url` cannot be used, as the end of a sentence, or None."""
    parts = urlsplit(url)
    if parts.scheme in ("http", "https"):
        return _http_problem(url)
    path = Path(unquote(parts.path))
    if parts.scheme == "unix":
        return asyncio.run(_socket_problem(path))
    if parts.scheme == "script" and not path.exists():
        return "has no file of recordings. Correct the path."
    return None


def _http_problem(url: str) -> str | None:
    """Ask for the health, and with the key for the models. vLLM answers the first without a key."""
    key, place = unquote(urlsplit(url).password or ""), location(url)
    try:
        with httpx2.Client(
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=LIMIT_S,
            trust_env=False,
            verify=default_ssl_context(),
        ) as client:
            health, listed = client.get(f"{place}/health"), client.get(f"{place}/v1/models")
    except (httpx2.HTTPError, OSError) as error:
        if problem := certificate_problem(error):
            return f"has a certificate that is not accepted ({problem}). {TRUST}."
        return f"does not answer ({type(error).__name__}). Start the engine, or correct the URL."
    for path, answer in (("/health", health), ("/v1/models", listed)):
        if answer.status_code in KEY_REFUSED:
            return f"refuses the key (HTTP {answer.status_code}). Write the key as http://:KEY@host:port."
        if answer.status_code != httpx2.codes.OK:
            return f"answers HTTP {answer.status_code} at {path}. Look into the log of the engine."
    return _model_problem(listed.content, parse_qs(urlsplit(url).query).get("model", [""])[0])


def _model_problem(content: bytes, model: str) -> str | None:
    try:
        names = [card["id"] for card in parse_models(content)]
    except EngineUnavailable:
        return "lists no models. Check that the URL is that of a vLLM."
    if model and model not in names:
        return (
            f"serves {', '.join(names) or 'no model'}, not {model}. Correct the parameter model of the URL, or load the model."
        )
    return None


async def _socket_problem(path: Path) -> str | None:
    """Ask a worker for the facts of its model, and for its health."""
    engine = SocketEngine(str(path), watch_s=0.0)
    try:
        await engine.connect()
        if not await engine.is_healthy():
            return "has a vLLM that hangs or starts again. Look into the log of the worker."
    except EngineUnreachable as error:
        return f"cannot be used: {error}. Start {SERVE}, which starts the worker."
    finally:
        await engine.close()
    return None
