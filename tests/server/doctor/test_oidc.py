"""Tests of responses_app/server/doctor/oidc.py: a real provider passes, and each fault is named."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from responses_app.server.doctor import oidc
from responses_app.server.doctor.findings import FAILED, OK, Finding, run_checks
from responses_app.web.oidc import reasons
from tests.support.http_server import SilentHandler, http_server, serving
from tests.support.oidc.process import Provider
from tests.support.oidc.program import CLIENT_SECRET
from tests.support.server.serve_command import free_port


def examine(issuer: str, **changes: Any) -> list[Finding]:
    """Return the findings of the check for an issuer and other settings."""
    with override_settings(RESPONSES_OIDC=replace(settings.RESPONSES_OIDC, issuer=issuer), **changes):
        return list(run_checks(oidc.checks()))


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    provider = Provider(tmp_path_factory.mktemp("provider"))
    yield provider
    provider.end()


@dataclass
class Faults:
    """Faults of a provider: metadata, HTTP status, body of the keys, seconds of the clock, header Age."""

    metadata: dict[str, object] = field(default_factory=dict)
    status: int = 200
    keys: str = '{"keys": [{}]}'
    ahead_s: float = 0.0
    age_s: int = 0


@contextmanager
def faulty_provider(faults: Faults) -> Iterator[str]:
    """Serve the metadata and the keys of a provider over HTTP. Yield the issuer."""

    class Handler(SilentHandler):
        def do_GET(self) -> None:
            issuer = f"http://{self.headers['Host']}"
            addresses = {name: f"{issuer}/{name}" for name in oidc.ADDRESSES}
            metadata = json.dumps({"issuer": issuer, **addresses, **faults.metadata})
            self.send_response(faults.status)
            self.send_header("Age", str(faults.age_s))
            self.end_headers()
            self.wfile.write((faults.keys if self.path == "/jwks_uri" else metadata).encode())

        def date_time_string(self, timestamp: float | None = None) -> str:
            return super().date_time_string((timestamp or time.time()) + faults.ahead_s)

    with serving(http_server(Handler)) as server:
        yield f"http://127.0.0.1:{server.server_port}"


def test_no_provider_has_no_check() -> None:
    assert examine("") == []


def test_a_real_provider_passes(provider: Provider) -> None:
    (finding,) = examine(f"{provider.url}/o/")
    assert (finding.name, finding.status) == ("sign-in provider", OK)
    assert f"{provider.url}/o answers as this issuer" in finding.message
    assert CLIENT_SECRET not in finding.message


def test_another_issuer_is_named(provider: Provider) -> None:
    (finding,) = examine(f"http://127.0.0.1:{provider.port}/o")
    assert finding.status == FAILED
    assert f"names the issuer '{provider.url}/o'" in finding.message


def test_a_path_without_metadata_is_named(provider: Provider) -> None:
    (finding,) = examine(f"{provider.url}/elsewhere")
    assert finding.status == FAILED
    assert reasons.ISSUER in finding.message


def test_a_provider_that_is_away_or_silent_is_named() -> None:
    (finding,) = examine(f"http://127.0.0.1:{free_port()}")
    assert (finding.status, reasons.AWAY in finding.message) == (FAILED, True)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        (finding,) = examine(f"http://127.0.0.1:{silent.getsockname()[1]}", SOCIALACCOUNT_REQUESTS_TIMEOUT=0.1)
    assert (finding.status, reasons.AWAY in finding.message) == (FAILED, True)
    assert "timed out" in finding.message


@pytest.mark.parametrize(
    ("faults", "text"),
    [
        (Faults(metadata={"jwks_uri": None, "token_endpoint": None}), "has no token_endpoint and no jwks_uri"),
        (Faults(keys='{"keys": []}'), "has no keys"),
        (Faults(keys="<html>"), reasons.ISSUER),
        (Faults(metadata={"jwks_uri": "no address"}), "No sign-in works"),
        (Faults(status=500), "500"),
        (Faults(ahead_s=90), "by -90 s"),
        (Faults(ahead_s=-90), "by +90 s"),
    ],
)
def test_each_fault_is_named(faults: Faults, text: str) -> None:
    with faulty_provider(faults) as issuer:
        (finding,) = examine(issuer)
    assert finding.status == FAILED
    # The date has whole seconds.
    assert text in finding.message.replace("-89 s", "-90 s").replace("+91 s", "+90 s")


def test_an_answer_of_a_cache_is_no_wrong_clock() -> None:
    with faulty_provider(Faults(ahead_s=-3600, age_s=3600)) as issuer:
        (finding,) = examine(issuer)
    assert finding.status == OK
