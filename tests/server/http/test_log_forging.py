"""Log of a real server: paths of clients write no lines of their own and no control characters."""

from __future__ import annotations

import re

import pytest

from tests.support import plain_http
from tests.support.server.serve_command import Server
from tests.support.waiting import wait_until

FORGED = "/v1/x%0d%0a2026-11-22%2000:00:00,000%20ERROR%20%20%20responses.run:%20FORGED%1b%5d0;pwned%07%C2%9b%E2%80%AE"


@pytest.mark.parametrize(("method", "path"), [("GET", FORGED), ("POST", FORGED), ("DELETE", "/v1/responses%0aFORGED")])
def test_path_forges_no_log_line(shared: Server, method: str, path: str) -> None:
    before = len(shared.log.read_bytes())

    def lines() -> list[str]:
        added = shared.log.read_bytes()[before:].decode()
        return [line for line in added.split("\n")[:-1] if "FORGED" in line]

    assert plain_http.request(method, f"{shared.url}{path}").status_code == 404
    wait_until(lines)
    assert all(re.match(r"20\d\d-\S+ \S+ (INFO|WARNING) +(responses\.api|django\.request): ", line) for line in lines())
    assert not [line for line in lines() if not line.isprintable()]
