"""Several servers on a single Postgres, as on several hosts: each has a separate data folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from responses_app.installation.database_url import ROLE, socket_dir
from responses_app.server.cli.model_specs import HARMONY
from tests.support.server.pgbouncer import MISSING, PROGRAM, database_url, pgbouncer
from tests.support.server.serve_command import Server

# The answer of `long` takes four seconds, that of `slow` ten.
TOKENS, PAUSE_S, SLOW_TOKENS, SLOW_PAUSE_S = 80, 0.05, 40, 0.25


@pytest.fixture(scope="session")
def models(tape: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """RESPONSES_MODELS with the model `tape`, and `long` and `slow`, whose answers take long enough for a failure of the host."""
    from openai_harmony import load_harmony_encoding

    encoding, folder = load_harmony_encoding("HarmonyGptOss"), tmp_path_factory.mktemp("hosts")
    entries = [f"tape={tape}&tokenizer={HARMONY}"]
    for name, count, pause in (("long", TOKENS, PAUSE_S), ("slow", SLOW_TOKENS, SLOW_PAUSE_S)):
        words = " one two three four five six seven eight nine ten" * (count // 10)
        ids = encoding.encode(f"<|channel|>final<|message|>{words}<|return|>", allowed_special="all")
        chunks = [step for token in ids for step in ({"tokens": [token]}, {"delay": pause})]
        path = folder / f"{name}.jsonl"
        path.write_text(json.dumps({"chunks": chunks}) + "\n")
        entries.append(f"{name}=script://{path}?loop=1&tokenizer={HARMONY}")
    return " ".join(entries)


@pytest.fixture(scope="session")
def direct_url(shared: Server) -> str:
    """The URL of a separate database, without a pooler."""
    shared.sql(f"CREATE DATABASE hosts OWNER {ROLE}")
    return f"postgresql://{ROLE}@/hosts?host={quote(str(socket_dir(shared.folder)), safe='')}"


@pytest.fixture(scope="session")
def pooled_url(shared: Server, direct_url: str) -> Iterator[str]:
    """The URL of the same database through PgBouncer in session mode."""
    del direct_url
    if PROGRAM is None:
        pytest.skip(MISSING)
    with pgbouncer(shared.folder) as url:
        yield database_url(url, "hosts")
