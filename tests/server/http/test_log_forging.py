"""The log of a real server: a client without a key cannot write lines of its own into it, nor reach the operator's terminal."""

from __future__ import annotations

import re
import time

import httpx2

from tests.support.server.serve_command import Server

FORGED = "/v1/x%0d%0a2026-11-22%2000:00:00,000%20ERROR%20%20%20responses.run:%20FORGED%1b%5d0;pwned%07%C2%9b%E2%80%AE"
LIMIT_S = 10.0


def test_a_path_of_a_client_cannot_forge_a_line(shared: Server) -> None:
    for method in ("GET", "POST"):
        assert httpx2.request(method, f"{shared.url}{FORGED}").status_code == 404
    assert httpx2.delete(f"{shared.url}/v1/responses%0aFORGED").status_code == 404
    deadline = time.monotonic() + LIMIT_S
    while shared.said.count("FORGED") < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    said = shared.log.read_bytes().decode()
    told = [line for line in said.split("\n") if "FORGED" in line]
    assert len(told) >= 3
    assert all(re.match(r"20\d\d-\S+ \S+ (INFO|WARNING) +(responses\.api|django\.request): ", line) for line in told)
    assert not [line for line in told if not line.isprintable()]
