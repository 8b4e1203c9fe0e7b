"""Usual mistakes at a start, made with the real programs: each ends with a sentence, and with nothing of a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from responses_app.installation.data_dir import ROOT
from responses_app.server.cli.model_specs import HARMONY
from tests.support.http_server import SilentHandler, http_server, serving
from tests.support.server.serve_command import free_port

MANAGE, SERVE = (sys.executable, "manage.py"), ("bin/serve",)
LIMIT_S = 180
POSTGRES = "postgresql://nobody@127.0.0.1:9/none"


class OtherServer(SilentHandler):
    """Web server that is no engine: each path is 404, with a page of HTML."""

    def do_GET(self) -> None:
        self.send_error(404)


def end_of(command: tuple[str, ...], data: str | Path, **environ: str) -> str:
    """Run a program that must fail, and return its output."""
    names = ("DATABASE_URL", "RESPONSES_API_KEY", "RESPONSES_MODELS", "SECRET_KEY", "PYTHONWARNINGS")
    inherited = {name: value for name, value in os.environ.items() if name not in names}
    environ = {**inherited, "RESPONSES_DATA_DIR": str(data), "RESPONSES_SANDBOX_PACKAGES": "off", **environ}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=LIMIT_S)
    output = done.stdout + done.stderr
    assert done.returncode == 1, output
    assert "Traceback" not in output
    return output


@pytest.mark.parametrize(
    ("command", "environ", "sentence"),
    [
        ("serve", {"SECRET_KEY": "short"}, "SECRET_KEY must have at least 32 characters"),
        *(
            (command, {name: "clé-of-sixteen-letters"}, f"{name} may contain letters, digits and signs of ASCII only")
            for command, name in (
                ("serve", "RESPONSES_API_KEY"),
                ("serve", "RESPONSES_ENGINE_KEY"),
                ("engine", "RESPONSES_ENGINE_KEY"),
                ("check", "RESPONSES_EMBEDDINGS_KEY"),
                ("check", "RESPONSES_METRICS_TOKEN"),
                ("check", "RESPONSES_SANDBOX_TOKEN"),
            )
        ),
        ("engine", {"RESPONSES_ENGINE_KEY": ""}, "RESPONSES_ENGINE_KEY is empty"),
        *(
            (command, {"SSL_CERT_FILE": file}, f"SSL_CERT_FILE: {file} cannot be used ({reason})")
            for command in ("serve --engine https://127.0.0.1:9", "engine")
            for file, reason in (("/nonexistent/ca.pem", "No such file or directory"), ("/etc/passwd", "no certificate in PEM"))
        ),
        ("serve", {"SECRET_KEY_FILE": "/nonexistent/key"}, "SECRET_KEY_FILE: /nonexistent/key cannot be read"),
        (
            "serve",
            {"RESPONSES_MODELS_FILE": "/nonexistent/models"},
            "RESPONSES_MODELS_FILE: /nonexistent/models cannot be read",
        ),
        ("serve", {"DATABASE_URL": "mysql://host/name"}, "DATABASE_URL must begin with postgresql://, not 'mysql'"),
        ("serve", {"DEBUG": "yesplease"}, "DEBUG must be true or false, not 'yesplease'"),
        ("migrate", {"DATABASE_URL": "mysql://host/name"}, "DATABASE_URL must begin with postgresql://, not 'mysql'"),
        ("createkey name", {"SECRET_KEY": "short"}, "SECRET_KEY must have at least 32 characters"),
    ],
)
def test_a_wrong_setting_is_named(command: str, environ: dict[str, str], sentence: str, tmp_path: Path) -> None:
    assert sentence in end_of((*MANAGE, *command.split()), tmp_path / "data", **environ)


@pytest.mark.parametrize(
    ("command", "folder"),
    [
        (SERVE, "/proc/verbatim"),
        (SERVE, "/etc/passwd"),
        (SERVE, "/etc/passwd/data"),
        ((*MANAGE, "serve"), "/etc/passwd/data"),
        ((*MANAGE, "migrate"), "/proc/verbatim"),
    ],
)
def test_a_data_folder_that_cannot_be_made_is_named(command: tuple[str, ...], folder: str) -> None:
    output = end_of(command, folder)
    assert f"the data folder {folder} cannot be used" in output
    assert "set RESPONSES_DATA_DIR" in output


@pytest.mark.parametrize("command", [SERVE, (*MANAGE, "engine"), (*MANAGE, "backup", "/nonexistent/backup")])
def test_file_in_place_of_a_folder_of_the_data_is_named(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "engines").touch()
    output = end_of(command, tmp_path)
    assert f"{tmp_path}/engines" in output
    assert "set RESPONSES_DATA_DIR" in output


def test_demo_model_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    end = end_of(("sh", "-c", f"ulimit -f 1000; exec bin/serve --port {free_port()}"), tmp_path)
    assert f"serve: demo-chat cannot be written to {tmp_path / 'models'}: File too large" in end


@pytest.mark.parametrize("limit", ["-n 64", "-Sn 64"])
def test_limit_of_open_files_is_named_or_raised(limit: str, tmp_path: Path) -> None:
    end = end_of(("sh", "-c", f"ulimit {limit}; exec bin/serve --host 192.0.2.1 --port {free_port()}"), tmp_path)
    assert ("LimitNOFILE=65536" if limit == "-n 64" else "this machine has no such address") in end


def test_a_database_that_is_away_is_named(tmp_path: Path) -> None:
    port = str(free_port())
    output = end_of((*MANAGE, "serve", "--port", port, "--model", "demo-chat"), tmp_path / "data", DATABASE_URL=POSTGRES)
    assert "serve: the database does not answer (" in output
    assert "Start Postgres, or correct DATABASE_URL" in output


def test_an_own_postgres_without_models_serves_no_demo_model(tmp_path: Path) -> None:
    output = end_of((*MANAGE, "serve", "--port", str(free_port())), tmp_path / "data", DATABASE_URL=POSTGRES)
    assert "serve: no model is named, and DATABASE_URL names a Postgres of your own: set RESPONSES_MODELS" in output
    output = end_of((*SERVE, "--port", str(free_port())), tmp_path / "data", DATABASE_URL=POSTGRES)
    assert "Preparing demo-chat" in output
    assert "serve: the database does not answer" in output


def test_an_engine_that_is_away_is_called_away(tmp_path: Path) -> None:
    environ, engine = {"RESPONSES_ENGINE_START_WAIT": "0"}, f"http://127.0.0.1:{free_port()}"
    output = end_of((*MANAGE, "serve", "--port", str(free_port()), "--engine", engine), tmp_path / "data", **environ)
    assert f"serve: the engine at {engine.removeprefix('http://')} is away" in output
    assert "--model" not in output


def test_an_engine_that_answers_with_errors_ends_the_start_with_one_line_and_its_log(tmp_path: Path) -> None:
    with serving(http_server(OtherServer)) as engine:
        model = f"name=http://127.0.0.1:{engine.server_port}?tokenizer={HARMONY}"
        output = end_of((*MANAGE, "serve", "--port", str(free_port()), "--model", model), tmp_path / "data")
    log = tmp_path / "data/logs/engine.log"
    (sentence,) = [line for line in output.splitlines() if line.startswith("serve: ")]
    assert sentence.startswith("serve: the engine did not start: name: ")
    assert sentence.endswith(f". The log {log} has the traceback")
    assert "Traceback" in log.read_text()


def test_an_unknown_model_or_tokenizer_is_refused_at_once(tmp_path: Path) -> None:
    environ = {"HF_ENDPOINT": f"http://127.0.0.1:{free_port()}", "HF_HUB_OFFLINE": "0", "HF_HOME": str(tmp_path / "hub")}
    engine = f"name=http://127.0.0.1:{free_port()}?tokenizer=none/such"
    for source in ("none/such", engine):
        output = end_of((*MANAGE, "serve", "--port", str(free_port()), "--model", source), tmp_path / "data", **environ)
        assert "none/such: " in output
        assert "cannot be reached" in output
        assert "Starting Postgres" not in output


def test_an_engine_without_a_tokenizer_is_refused_at_once(tmp_path: Path) -> None:
    command = (*MANAGE, "serve", "--web", "2", "--port", str(free_port()), "--model", "script:///tape.jsonl")
    output = end_of(command, tmp_path / "data")
    assert "serve: the engine URL of the model tape names no tokenizer: add ?tokenizer=FOLDER-OR-HUB-NAME to the URL" in output
    assert "Starting Postgres" not in output


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ("tape=script:///nonexistent/tape.jsonl?tokenizer={t}", "No such file or directory: '/nonexistent/tape.jsonl'"),
        (
            "m=http://127.0.0.1:9?model=m&max_model_len=lots&tokenizer={t}",
            "max_model_len in an engine URL must be a whole number",
        ),
        ("m=http://127.0.0.1:9?model=m&priorty=1&tokenizer={t}", "unknown parameter priorty in a http: engine URL"),
        ("m=grpc://127.0.0.1:9?tokenizer={t}", "no engine for 'grpc'"),
    ],
)
def test_a_wrong_engine_url_is_refused_before_any_process_is_started(entry: str, sentence: str, tmp_path: Path) -> None:
    command = (*MANAGE, "serve", "--web", "2", "--port", str(free_port()))
    output = end_of(command, tmp_path / "data", RESPONSES_MODELS=entry.format(t=HARMONY))
    assert len(output.splitlines()) == 1, output
    assert output.startswith("serve: RESPONSES_MODELS: ")
    assert sentence in output


def test_an_alias_of_an_unknown_model_is_refused_before_any_process_is_started(tmp_path: Path) -> None:
    models = f"m=http://127.0.0.1:9?model=m&tokenizer={HARMONY}"
    environ = {"RESPONSES_MODELS": models, "RESPONSES_ALIASES": "gpt-5=none"}
    output = end_of((*MANAGE, "serve", "--web", "2", "--port", str(free_port())), tmp_path / "data", **environ)
    assert output.startswith("serve: RESPONSES_ALIASES: 'gpt-5=none' must be name=model"), output
