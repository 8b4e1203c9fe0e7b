"""Several servers on a single Postgres, as on several hosts: each has a separate data folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from responses_app.installation.database_url import ROLE, socket_dir
from responses_app.server.cli.model_specs import HARMONY
from tests.support.engines.held_script import HeldScript, held_words
from tests.support.server.pgbouncer import MISSING, PROGRAM, database_url, pgbouncer
from tests.support.server.serve_command import Server

# Seconds of an answer of `slow`, in tokens and pauses.
TOKENS = 40
PAUSE_S = float(os.environ.get("TEST_STREAM_S", "10")) / TOKENS


@pytest.fixture(scope="session")
def script(tmp_path_factory: pytest.TempPathFactory) -> HeldScript:
    """The script of the model `held`, whose answers pause while no test releases them."""
    return held_words(tmp_path_factory.mktemp("held"))


@pytest.fixture(scope="session")
def models(tape: str, script: HeldScript, tmp_path_factory: pytest.TempPathFactory) -> str:
    """RESPONSES_MODELS with the models `tape`, `held`, and `slow`, whose answers take long enough for a restart of all hosts."""
    from openai_harmony import load_harmony_encoding

    encoding, path = load_harmony_encoding("HarmonyGptOss"), tmp_path_factory.mktemp("hosts") / "slow.jsonl"
    words = " one two three four five six seven eight nine ten" * (TOKENS // 10)
    ids = encoding.encode(f"<|channel|>final<|message|>{words}<|return|>", allowed_special="all")
    chunks = [step for token in ids for step in ({"tokens": [token]}, {"delay": PAUSE_S})]
    path.write_text(json.dumps({"chunks": chunks}) + "\n")
    engines = {"tape": tape, "held": script.url, "slow": f"script://{path}?loop=1"}
    return " ".join(f"{name}={url}&tokenizer={HARMONY}" for name, url in engines.items())


@pytest.fixture(scope="module")
def database(shared: Server, request: pytest.FixtureRequest) -> str:
    """The name of an empty database of the module."""
    name = str(request.module.__name__).rpartition(".")[2]
    shared.sql(f"CREATE DATABASE {name} OWNER {ROLE}")
    return name


@pytest.fixture(scope="module")
def direct_url(shared: Server, database: str) -> str:
    """The URL of the database, without a pooler."""
    return f"postgresql://{ROLE}@/{database}?host={quote(str(socket_dir(shared.folder)), safe='')}"


@pytest.fixture(scope="module")
def pooled_url(shared: Server, database: str) -> Iterator[str]:
    """The URL of the same database through PgBouncer in session mode."""
    if PROGRAM is None:
        pytest.skip(MISSING)
    with pgbouncer(shared.folder) as url:
        yield database_url(url, database)
