"""Servers behind PgBouncer: session mode with LISTEN on a direct connection; transaction mode is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psycopg
import pytest

from responses_app.server.bootstrap.pooler import has_notifications, has_shared_sessions
from tests.support.server.pgbouncer import MISSING, PROGRAM, database_url, pgbouncer
from tests.support.server.requests import KEY, call, create, replay, replayed, wait_ended
from tests.support.server.serve_command import START_LIMIT, Server
from tests.support.store.connection_loss import cut
from tests.support.waiting import wait_until

# The sessions that listen hold a shared lock for their process; their last query is another one after some quiet seconds.
LISTENERS_SQL = """
SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND mode = 'ShareLock' AND datname = current_database()
"""

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=MISSING)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, models: str, pooled_url: str, direct_url: str) -> Iterator[Server]:
    """Two web processes, which reach Postgres through PgBouncer alone, but for LISTEN."""
    server = Server(
        tmp_path_factory.mktemp("pooled") / "data",
        *("--web", "2"),
        RESPONSES_MODELS=models,
        DATABASE_URL=pooled_url,
        RESPONSES_LISTEN_DATABASE_URL=f"{direct_url}&application_name=direct",
        RESPONSES_API_KEY=KEY,
    )
    yield server.ready()
    server.end()


def test_response_of_each_web_process_is_stored_and_replayed(server: Server) -> None:
    for _ in range(6):
        created = create(server)
        events = replay(server, created["id"])
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        assert events[-1]["response"] == created


def test_running_response_is_followed_and_cancelled_by_any_process(server: Server) -> None:
    for _ in range(6):
        uid = create(server, model="held", background=True)["id"]
        with replayed(server, uid) as events:
            assert next(events)["type"] == "response.created"
            call(server, "POST", f"responses/{uid}/cancel")
            last = list(events)[-1]
        assert last["response"]["status"] == "cancelled"


def test_conversation_goes_on_through_the_pooler(server: Server) -> None:
    conversation = call(server, "POST", "conversations", json={}).json()["id"]
    for _ in range(2):
        wait_ended(server, create(server, conversation=conversation)["id"])
    assert len(call(server, "GET", f"conversations/{conversation}/items").json()["data"]) == 4


def test_listening_does_not_use_the_pooler(server: Server, direct_url: str) -> None:
    with psycopg.connect(direct_url) as database:
        names = database.execute(LISTENERS_SQL).fetchall()
    assert names == [("direct",), ("direct",)]
    assert "notifications are interrupted" not in server.output


def test_running_response_survives_the_loss_of_all_sessions(server: Server, direct_url: str) -> None:
    uid = create(server, background=True)["id"]
    cut({"conninfo": direct_url})
    assert wait_ended(server, uid)["status"] == "completed"
    answers: list[httpx2.Response] = []

    def is_replayed() -> bool:
        answers.append(call(server, "GET", f"responses/{uid}?stream=true"))
        return answers[-1].status_code == 200

    # Each lost session of the pools refuses one request.
    wait_until(is_replayed)
    text = answers[-1].text
    numbers = [json.loads(line[6:])["sequence_number"] for line in text.splitlines() if line.startswith("data: {")]
    assert numbers == list(range(len(numbers)))
    assert "response.completed" in text


def test_sessions_of_a_pooler_are_recognised(shared: Server, direct_url: str, pooled_url: str) -> None:
    assert not has_shared_sessions({"conninfo": direct_url})
    assert not has_shared_sessions({"conninfo": pooled_url})
    with pgbouncer(shared.folder, "transaction") as url:
        assert has_shared_sessions({"conninfo": url})


def test_notifications_of_another_database_do_not_arrive(pooled_url: str, direct_url: str) -> None:
    other = {"conninfo": database_url(pooled_url, "postgres")}
    assert has_notifications({"conninfo": pooled_url}, {"conninfo": direct_url})
    assert not has_notifications({"conninfo": pooled_url}, other)


def test_transaction_mode_is_refused_at_the_start(
    shared: Server, tmp_path: Path, tape: str, database: str, direct_url: str
) -> None:
    with pgbouncer(shared.folder, "transaction") as url:
        server = Server(
            tmp_path / "data",
            *("--engine", tape),
            DATABASE_URL=database_url(url, database),
            RESPONSES_LISTEN_DATABASE_URL=direct_url,
            RESPONSES_API_KEY=KEY,
        )
        assert server.process.wait(START_LIMIT) == 1
    assert "connection pooler in transaction mode" in server.output
