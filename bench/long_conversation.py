"""Turns of conversations that are much longer than the context: milliseconds and CPU milliseconds of a turn, by the number of items.

    python -m bench.long_conversation [--items 1000 20000] [--turns 20] [--window 4096]
    python -m bench.long_conversation --model demo-chat --turns 200

Behind the table stand the bytes of all prompts, and those that are stored once the logs are archived.

The items are short messages, stored by SQL. Each turn has `truncation: auto`, in a conversation and with `previous_response_id`.
The engine replays a tape, so the figures are those of the server.

With `--model`, the model answers a conversation whose first prompt fills its context: `cached_tokens` and milliseconds of each turn.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import psycopg

from bench.support.markdown import markdown_table
from bench.support.quantiles import quantile
from bench.support.servers import ROOT, BenchServer, serve
from bench.turns import KEY, PORT, write_tape
from responses_app.installation.database_url import superuser_url

ANSWER: Final = "<|channel|>final<|message|>So it is.<|return|>"
FILL_SQL: Final = """
WITH conversation AS (SELECT id, project FROM responses_app_conversation WHERE uid = %(uid)s
), items AS (
  INSERT INTO responses_app_item (uid, project, direction, type, body)
  SELECT 'msg_' || %(uid)s || n, project, 'input', 'message', json_build_object('id', 'msg_' || %(uid)s || n, 'type', 'message',
    'role', (ARRAY['user', 'assistant'])[n %% 2 + 1], 'status', 'completed', 'content', json_build_array(CASE WHEN n %% 2 = 0
      THEN json_build_object('type', 'input_text', 'text', 'Message ' || n || ' of a long conversation.')
      ELSE json_build_object('type', 'output_text', 'text', 'Answer ' || n || ' of it.', 'annotations', '[]'::json,
        'logprobs', '[]'::json) END))::text
  FROM conversation, generate_series(0, %(count)s - 1) AS n ORDER BY n RETURNING id, uid
)
INSERT INTO responses_app_conversationitem (conversation_id, item_id, uid)
SELECT conversation.id, items.id, items.uid FROM conversation, items ORDER BY items.id
"""
PROMPTS_SQL: Final = """
SELECT count(*), sum(4 * COALESCE(shared_tokens, 0) + octet_length(prompt_tokens)), sum(octet_length(prompt_tokens))
FROM responses_app_storedrequest
"""
ARCHIVE_LIMIT_S: Final = 300.0
# An eighth of the context is dropped at once, so a prompt that begins elsewhere has less than this share in the prefix cache.
CACHED_SHARE: Final = 0.85
MESSAGE: Final = "The parcel of order {number} has left the harbour, and the clerk wrote its weight into the book. " * 4
ANSWER_TOKENS: Final = 16
LIMIT_HEAD: Final = ("turn", "input tokens", "cached tokens", "ms")
LIMIT_SUMMARY: Final = (
    "turns",
    "turns with 85 % of the input cached",
    "cached, 5th percentile",
    "ms median",
    "ms p95",
    "ms longest",
)
HEAD: Final = ("items", "turn", "ms median", "ms longest", "CPU ms web", "CPU ms Postgres", "WAL kB")


def main(argv: Sequence[str] | None = None) -> None:
    """Start a server, measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, nargs="+", default=[1000, 20_000])
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--window", type=int, help="tokens of the context (default: 4096, or all of the model)")
    parser.add_argument("--model", help="turns of this model at the limit of its context, in place of a tape")
    parser.add_argument("--port", type=int, default=PORT)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="verbatim-long-") as folder:
        data = Path(folder) / "data"
        command = [str(ROOT / "bin/serve"), "--port", str(options.port)]
        if options.model:
            command += ["--model", options.model, *(["--max-model-len", str(options.window)] if options.window else [])]
        else:
            tape = write_tape(Path(folder), ANSWER)
            command += ["--engine", f"script://{tape}?loop=1&max_model_len={options.window or 4096}"]
        env = {"RESPONSES_DATA_DIR": str(data), "RESPONSES_API_KEY": KEY, "RESPONSES_LOG_LEVEL": "WARNING"}
        with (
            serve(command, options.port, env, Path(folder) / "log") as server,
            psycopg.connect(superuser_url(data), autocommit=True) as link,
        ):
            if options.model:
                print("\n".join(_measure_at_limit(server.port, options.model, options.turns)), flush=True)
                return
            rows = [row for count in options.items for row in _measure(server, link, count, options.turns)]
            print("\n".join(markdown_table(HEAD, rows)), flush=True)
            print(_describe_prompts(link))


def _measure(server: BenchServer, link: psycopg.Connection[Any], count: int, turns: int) -> list[list[str]]:
    """Measure turns of a conversation of `count` items, and of a chain that begins with these items."""
    uid = _post(server.port, "conversations", {})["id"]
    link.execute(FILL_SQL, {"uid": uid, "count": count})
    link.execute("VACUUM ANALYZE")
    previous = _turn(server.port, {"conversation": uid})
    rows = []
    for kind, field, value in (
        ("conversation", "conversation", uid),
        ("previous_response_id", "previous_response_id", previous),
    ):
        times, parts, wal = list[float](), server.parts(), _wal(link)
        for _ in range(turns):
            began = time.perf_counter()
            answer = _turn(server.port, {field: value})
            times.append(time.perf_counter() - began)
            value = answer if field == "previous_response_id" else value
        spent = {part: (seconds - parts.get(part, 0)) / turns for part, seconds in server.parts().items()}
        cells = [statistics.median(times), max(times), spent.get("web", 0) + spent["server"], spent["postgres"]]
        kilobytes = (_wal(link) - wal) / turns / 1000
        rows.append([f"{count:,}", kind, *(f"{1000 * cell:.1f}" for cell in cells), f"{kilobytes:.0f}"])
    return rows


def _measure_at_limit(port: int, model: str, turns: int) -> list[str]:
    """Measure turns of a chain whose first input is longer than the context, and return a table of the turns and a summary."""
    body: dict[str, Any] = {"model": model, "truncation": "auto", "max_output_tokens": ANSWER_TOKENS, "temperature": 0}
    window = next(each["context_window"] for each in _get(port, "models")["data"] if each["id"] == model)
    # A message has a token for six characters at least.
    first = [{"role": "user", "content": MESSAGE.format(number=number)} for number in range(6 * window // len(MESSAGE))]
    previous = _post(port, "responses", {**body, "input": first})["id"]
    rows, shares, times = [], list[float](), list[float]()
    for turn in range(1, turns + 1):
        began = time.perf_counter()
        text = MESSAGE.format(number=len(first) + turn)
        answer = _post(port, "responses", {**body, "input": text, "previous_response_id": previous})
        times.append(1000 * (time.perf_counter() - began))
        previous, usage = answer["id"], answer["usage"]
        tokens, cached = usage["input_tokens"], usage["input_tokens_details"]["cached_tokens"]
        shares.append(cached / tokens)
        rows.append([str(turn), f"{tokens:,}", f"{cached:,}", f"{times[-1]:.0f}"])
    hits = sum(share >= CACHED_SHARE for share in shares) / turns
    cells = [f"{turns}", f"{hits:.1%}", f"{quantile(shares, 0.05):.1%}"]
    cells += [f"{value:.0f}" for value in (statistics.median(times), quantile(times, 0.95), max(times))]
    return [*markdown_table(LIMIT_HEAD, rows), "", *markdown_table(LIMIT_SUMMARY, [cells])]


def _describe_prompts(link: psycopg.Connection[Any]) -> str:
    """Wait until all logs are archived, and return the bytes of the prompts and of their rows. Raises TimeoutError."""
    deadline = time.monotonic() + ARCHIVE_LIMIT_S
    while link.execute("SELECT FROM responses_app_response WHERE log_form = 0").fetchone() is not None:
        if time.monotonic() > deadline:
            raise TimeoutError("logs are still waiting for archiving")
        time.sleep(1)
    count, whole, stored = link.execute(PROMPTS_SQL).fetchone() or (0, 0, 0)
    return f"{count} prompts: {whole / 1000:,.0f} kB of token ids, {stored / 1000:,.0f} kB stored"


def _turn(port: int, fields: Mapping[str, Any]) -> str:
    """Send a turn and return the id of the response."""
    body = {"model": "tape", "input": "And then?", "truncation": "auto", **fields}
    answer = _post(port, "responses", body)
    assert answer["status"] == "completed", answer
    return str(answer["id"])


def _get(port: int, path: str) -> dict[str, Any]:
    return _request("GET", port, path, None)


def _post(port: int, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    return _request("POST", port, path, json.dumps(body))


def _request(method: str, port: int, path: str, body: str | None) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request(method, f"/v1/{path}", body, headers)
        content: dict[str, Any] = json.load(connection.getresponse())
    return content


def _wal(link: psycopg.Connection[Any]) -> float:
    row = link.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
    assert row is not None
    return float(row[0])


if __name__ == "__main__":
    main()
