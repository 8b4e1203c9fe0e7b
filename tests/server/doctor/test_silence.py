"""Check of silent requests by `manage.py doctor --url --wait`: the answers of a proxy that ends these."""

from __future__ import annotations

import threading

import pytest

from responses_app.server.doctor.findings import FAILED, OK, SKIPPED, FindingStatus
from responses_app.server.doctor.silence import check_silent_request
from tests.support.http_server import SilentHandler, http_server, serving


@pytest.mark.parametrize(
    ("ending", "status", "sentence"),
    [
        ("none", OK, "stays open for 0.3 silent seconds"),
        ("504", FAILED, "The proxy answers 504 to a silent request"),
        ("close", FAILED, "A silent request was ended after 0 s"),
        ("200", SKIPPED, "without a stream was answered 200 after"),
    ],
)
def test_end_of_a_silent_request_is_named(ending: str, status: FindingStatus, sentence: str) -> None:
    is_over = threading.Event()

    class EndingProxy(SilentHandler):
        def do_GET(self) -> None:
            self.answer(200, b'{"data": [{"id": "m"}]}')

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            if ending == "none":
                is_over.wait(60)
            elif ending != "close":
                self.answer(int(ending), b"{}")

        def answer(self, code: int, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            if code == 200:
                self.send_header("x-request-id", "req_1")
            self.end_headers()
            self.wfile.write(body)

    with serving(http_server(EndingProxy)) as server:
        wait_s = 0.3 if ending == "none" else 60
        (finding,) = check_silent_request(f"http://127.0.0.1:{server.server_port}", "sk", wait_s)
        is_over.set()
    assert (finding[0], sentence in finding[1]) == (status, True), finding
