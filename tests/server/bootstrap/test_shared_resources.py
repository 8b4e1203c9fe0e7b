"""Clock of a host beside the clock of the database, and a folder of files that cannot be written to."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.db.models.functions import Now
from django.test import override_settings

from responses_app.installation.shared_settings import shared_settings
from responses_app.models import Worker
from responses_app.server.bootstrap import shared_resources
from responses_app.server.bootstrap.first_api_key import unshared_secret_key
from responses_app.server.doctor.database import check_settings_of_hosts
from responses_app.server.doctor.findings import OK, WARNING
from responses_app.store.cluster import leases
from responses_app.tools.mcp.setting import with_demo_server
from responses_app.web.oidc.setting import provider_app

BACKEND = "django.core.files.storage.FileSystemStorage"


@pytest.mark.django_db
def test_clock_ahead_of_the_database_is_named() -> None:
    assert list(shared_resources.warnings()) == []
    with patch.object(shared_resources, "datetime") as clock:
        clock.now.side_effect = lambda _: datetime.now(UTC) + timedelta(hours=1)
        assert any("differs from the clock of Postgres by +3600 s" in sentence for sentence in shared_resources.warnings())


@pytest.mark.django_db
def test_settings_that_another_process_has_otherwise_are_named() -> None:
    Worker.objects.create(uid=uuid4(), name="earlier version", heartbeat_at=Now())
    prices = {"a": 1, "b": 2}
    with override_settings(RESPONSES_KEEP_RESPONSES=timedelta(days=90), RESPONSES_PRICES=prices):
        leases.heartbeat(uuid4(), "host-a:1", [])
    with override_settings(RESPONSES_KEEP_RESPONSES=timedelta(days=90), RESPONSES_PRICES={"b": 2, "a": 1}):
        assert list(shared_resources.warnings()) == []
    with override_settings(RESPONSES_KEEP_RESPONSES=timedelta(days=7), RESPONSES_PRICES=prices):
        (sentence,) = shared_resources.warnings()
        assert sentence.startswith("RESPONSES_KEEP_RESPONSES: host-a:1, a process of this database, has another value.")
        assert list(check_settings_of_hosts()) == [(WARNING, sentence)]
        Worker.objects.update(heartbeat_at="2026-01-01T00:00Z")
        assert [status for status, _ in check_settings_of_hosts()] == [OK]


@pytest.mark.django_db
def test_process_with_a_heartbeat_of_the_future_is_named_and_does_not_count_as_running() -> None:
    with override_settings(RESPONSES_KEEP_RESPONSES=timedelta(days=90), SECRET_KEY="other key of thirty-two characters"):
        leases.heartbeat(uuid4(), "host-a:1", [])
    Worker.objects.update(heartbeat_at=Now() + timedelta(seconds=50))
    assert [sentence.partition(":")[0] for sentence in shared_resources.warnings()] == ["RESPONSES_KEEP_RESPONSES"]
    assert unshared_secret_key() is not None
    Worker.objects.update(heartbeat_at=Now() + timedelta(hours=1))
    (sentence,) = shared_resources.warnings()
    assert "host-a:1, a process of this database, lies more than 60 s in the future" in sentence
    assert unshared_secret_key() is None


@pytest.mark.django_db
def test_mcp_servers_and_sign_in_of_another_process_are_compared_by_hash() -> None:
    servers: dict[str, Any] = {"docs": {"url": "https://docs.example.com/mcp", "authorization": "mcp-secret"}}
    sign_in: dict[str, Any] = {
        "RESPONSES_OIDC": replace(settings.RESPONSES_OIDC, issuer="https://id.example.com", superuser_groups=frozenset("abc")),
        "SOCIALACCOUNT_PROVIDERS": provider_app("https://id.example.com", "verbatim", "client-secret", ["email"]),
    }
    with override_settings(RESPONSES_MCP_SERVERS=servers, **sign_in):
        leases.heartbeat(uuid4(), "host-a:1", [])
        assert list(shared_resources.warnings()) == []
        assert "secret" not in str(Worker.objects.values_list("shared_settings", flat=True).get())
        with override_settings(RESPONSES_MCP_SERVERS={"docs": {**servers["docs"], "authorization": "another secret"}}):
            (sentence,) = shared_resources.warnings()
            assert sentence.startswith("RESPONSES_MCP_SERVERS: host-a:1, a process of this database, has another value.")
    for changes in (
        {"RESPONSES_OIDC": replace(sign_in["RESPONSES_OIDC"], roles={"staff": {"default": 1}})},
        {"SOCIALACCOUNT_PROVIDERS": provider_app("https://id.example.com", "verbatim", "another secret", ["email"])},
    ):
        with override_settings(RESPONSES_MCP_SERVERS=servers, **{**sign_in, **changes}):
            (sentence,) = shared_resources.warnings()
            assert sentence.startswith("RESPONSES_OIDC_…: host-a:1, a process of this database, has another value.")


@pytest.mark.django_db
def test_example_server_of_demo_tools_is_no_other_value() -> None:
    servers: dict[str, Any] = {"docs": {"url": "https://docs.example.com/mcp"}}
    with override_settings(RESPONSES_DEMO_TOOLS=True, RESPONSES_MCP_SERVERS=with_demo_server(servers)):
        leases.heartbeat(uuid4(), "host-a:1", [])
    with override_settings(RESPONSES_MCP_SERVERS=servers):
        assert list(shared_resources.setting_differences()) == []
    with override_settings(RESPONSES_MCP_SERVERS={**servers, "demo": {"url": "https://demo.example.com/mcp"}}):
        assert len(list(shared_resources.setting_differences())) == 1


@pytest.mark.django_db
def test_settings_with_secrets_are_hashed_with_the_secret_key() -> None:
    servers = {"docs": {"url": "https://docs.example.com/mcp", "authorization": "a guessed password"}}
    with override_settings(RESPONSES_MCP_SERVERS=servers, SECRET_KEY="first key of thirty-two characters"):
        leases.heartbeat(uuid4(), "host-a:1", [])
        first = shared_settings()
        assert list(shared_resources.warnings()) == []
    with override_settings(RESPONSES_MCP_SERVERS=servers, SECRET_KEY="other key of thirty-two characters"):
        assert {name for name, value in shared_settings().items() if value != first[name]} == {
            "RESPONSES_MCP_SERVERS",
            "RESPONSES_OIDC_…",
        }
        # The start warns of the other key itself.
        assert list(shared_resources.setting_differences()) == []


@pytest.mark.django_db
def test_hashes_of_an_earlier_version_are_no_other_value() -> None:
    leases.heartbeat(uuid4(), "host-a:1", [])
    earlier = {**shared_settings(), "RESPONSES_MCP_SERVERS": "0123456789abcdef"}
    Worker.objects.update(shared_settings=earlier)
    assert list(shared_resources.setting_differences()) == []


@pytest.mark.django_db
def test_database_of_a_later_version_is_named_and_those_of_other_apps_are_not() -> None:
    recorder = MigrationRecorder(connection)
    recorder.record_applied("other_app", "9999_future")
    assert list(shared_resources.warnings()) == []
    recorder.record_applied("responses_app", "9999_future")
    (sentence,) = shared_resources.warnings()
    assert "migrations of a later version, such as responses_app.9999_future. Start that version" in sentence


@pytest.mark.django_db
def test_folder_of_files_that_cannot_be_made_is_named_with_its_setting(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    entry = {"BACKEND": BACKEND, "OPTIONS": {"location": tmp_path / "file" / "files"}}
    with override_settings(STORAGES={**settings.STORAGES, "files": entry}):
        (sentence,) = shared_resources.warnings()
        assert "Not a directory" in sentence
        assert "Check the disk, the owner and the rights. All hosts" in sentence
