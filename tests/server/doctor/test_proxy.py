"""Checks of `manage.py doctor --url`: each fault of a proxy is named, against a real server."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import json
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from responses_app.server.doctor import proxy
from responses_app.server.doctor.findings import FAILED, OK, SKIPPED, Finding, run_checks
from tests.support.http_server import SilentHandler, http_server, serving
from tests.support.server.serve_command import Server, free_port

HEAD_END = b"\r\n\r\n"
TOO_LARGE = (
    b"HTTP/1.1 413 Request Entity Too Large\r\nContent-Type: text/html\r\nContent-Length: 5\r\nConnection: close\r\n\r\n<413>"
)


@dataclass(frozen=True, slots=True)
class ProxyFaults:
    """Faults of a proxy. `closes_after_s` ends each connection of an upgrade after so many seconds."""

    buffers: bool = False
    body_limit: int | None = None
    drops_upgrade: bool = False
    replaces_host: bool = False
    closes_after_s: float | None = None


@contextmanager
def faulty_proxy(upstream_port: int, faults: ProxyFaults) -> Iterator[str]:
    """Run a proxy in front of a port of 127.0.0.1, and yield its URL. Each connection carries one request."""
    port, started, loops = free_port(), threading.Event(), list[asyncio.AbstractEventLoop]()
    stopping = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await _serve(reader, writer, upstream_port, faults)
        finally:
            writer.transport.abort()

    async def run() -> None:
        async with await asyncio.start_server(handle, "127.0.0.1", port, limit=1 << 20):
            loops.append(asyncio.get_running_loop())
            started.set()
            await stopping.wait()

    thread = threading.Thread(target=asyncio.run, args=(run(),), daemon=True)
    thread.start()
    started.wait()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        loops[0].call_soon_threadsafe(stopping.set)
        thread.join()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, faults: ProxyFaults) -> None:
    head = await reader.readuntil(HEAD_END)
    length = int(match[1]) if (match := re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)) else 0
    if faults.body_limit is not None and length > faults.body_limit:
        await reader.readexactly(length)
        writer.write(TOO_LARGE)
        await writer.drain()
        return
    is_upgrade = b"websocket" in head.lower() and not faults.drops_upgrade
    if not is_upgrade:
        head = re.sub(rb"(?i)\r\n(connection|upgrade): [^\r]*", b"", head).replace(
            HEAD_END, b"\r\nConnection: close" + HEAD_END
        )
    if faults.replaces_host:
        head = re.sub(rb"(?i)\r\nhost: [^\r]*", b"\r\nHost: upstream.internal", head)
    upstream, to_upstream = await asyncio.open_connection("127.0.0.1", port)
    to_upstream.write(head)
    try:
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(_copy(reader, to_upstream))
            with suppress(TimeoutError):
                async with asyncio.timeout(faults.closes_after_s if is_upgrade else None):
                    await _copy(upstream, writer, buffered=faults.buffers and not is_upgrade)
            sending.cancel()
    finally:
        to_upstream.transport.abort()
        await _drained(writer)


async def _drained(writer: asyncio.StreamWriter) -> None:
    """Close a connection when all bytes are sent."""
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, buffered: bool = False) -> None:
    pieces = []
    while data := await reader.read(65_536):
        if buffered:
            pieces.append(data)
        else:
            writer.write(data)
            await writer.drain()
    writer.write(b"".join(pieces))
    await writer.drain()


def examine(server: Server, faults: ProxyFaults, wait_s: float = 0) -> dict[str, Finding]:
    """Return the last finding of each check through a proxy with `faults`."""
    with faulty_proxy(server.port, faults) as url:
        return {finding.name: finding for finding in run_checks(proxy.checks(url, server.key, wait_s))}


def failed(findings: dict[str, Finding]) -> set[str]:
    return {name for name, finding in findings.items() if finding.status == FAILED}


def test_a_proxy_without_faults_has_no_finding(shared: Server) -> None:
    findings = examine(shared, ProxyFaults(), wait_s=0.2)
    assert {name: finding for name, finding in findings.items() if finding.status != OK} == {}
    assert set(findings) == {"TLS", "proxy", "host header", "body size", "buffering", "WebSocket", "silent request"}
    assert findings["WebSocket"].message == "A quiet WebSocket stays open for 0.2 s."


@pytest.mark.parametrize(
    ("faults", "name", "remedy"),
    [
        (ProxyFaults(buffers=True), "buffering", "proxy_buffering off"),
        (ProxyFaults(body_limit=1024 * 1024), "body size", "client_max_body_size"),
        (ProxyFaults(drops_upgrade=True), "WebSocket", "proxy_set_header Upgrade"),
        (ProxyFaults(replaces_host=True), "host header", "proxy_set_header Host"),
        (ProxyFaults(closes_after_s=0.2), "WebSocket", "Raise the read time-out"),
    ],
)
def test_each_fault_of_a_proxy_is_named_with_a_remedy(shared: Server, faults: ProxyFaults, name: str, remedy: str) -> None:
    findings = examine(shared, faults, wait_s=3 if faults.closes_after_s else 0.2)
    assert failed(findings) == {name}
    assert remedy in findings[name].message


def test_slow_preparation_before_a_short_stream_is_no_buffering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "MIN_STREAM_S", 0.0)

    class Slow(SilentHandler):
        def do_GET(self) -> None:
            self.answer(b'{"data": [{"id": "m", "status": "ready"}]}')

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.answer(b"data: [DONE]\n\n")

        def answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("openai-processing-ms", "60000")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with serving(http_server(Slow)) as server:
        (finding,) = run_checks([("buffering", lambda: proxy.check_buffering(f"http://127.0.0.1:{server.server_port}", "sk"))])
    assert (finding.status, "too short to see buffering" in finding.message) == (SKIPPED, True)


@pytest.mark.parametrize("encoding", [None, "gzip"])
def test_short_stream_is_repeated_longer_and_compression_is_named(
    monkeypatch: pytest.MonkeyPatch, encoding: str | None
) -> None:
    monkeypatch.setattr(proxy, "MIN_STREAM_S", 3600.0)
    bodies: list[dict[str, Any]] = []

    class Streaming(SilentHandler):
        def do_GET(self) -> None:
            self.answer(b'{"data": [{"id": "m"}]}')

        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.answer(b"data: [DONE]\n\n", encoding)

        def answer(self, body: bytes, encoding: str | None = None) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            if encoding:
                self.send_header("Content-Encoding", encoding)
            self.end_headers()
            self.wfile.write(body)

    with serving(http_server(Streaming)) as server:
        (finding,) = run_checks([("buffering", lambda: proxy.check_buffering(f"http://127.0.0.1:{server.server_port}", "sk"))])
    if encoding:
        assert finding.status == FAILED
        assert finding.message.startswith("The proxy compresses a stream with gzip")
    else:
        assert finding.status == SKIPPED
        assert [(body["max_output_tokens"], body["ignore_eos"]) for body in bodies] == [(200, True), (4_000, True)]


@pytest.mark.parametrize(
    ("arrivals", "status"), [([0.1, 1.0], OK), ([0.9, 1.0], FAILED), ([0.2, 0.3], SKIPPED), ([], SKIPPED), ([-0.1, 2.0], OK)]
)
def test_the_first_piece_of_a_buffered_stream_comes_at_its_end(arrivals: list[float], status: str) -> None:
    assert proxy.judge_stream("m", arrivals)[0] == status


def test_a_server_that_is_away_is_named_and_ends_the_checks() -> None:
    findings = list(run_checks(proxy.checks(f"http://127.0.0.1:{free_port()}", "sk", 0)))
    assert [finding.name for finding in findings] == ["TLS", "proxy"]
    assert "does not answer" in findings[1].message


def test_answer_without_request_id_is_of_another_server_or_a_proxy_that_removes_the_header() -> None:
    class Hiding(SilentHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with serving(http_server(Hiding)) as server:
        findings = list(run_checks(proxy.checks(f"http://127.0.0.1:{server.server_port}", "sk-any", 0)))
    assert [(finding.name, finding.status) for finding in findings][-1] == ("proxy", FAILED)
    assert "another server answers: correct the route" in findings[-1].message
    assert "the proxy removes this header: let it pass" in findings[-1].message


def test_a_redirect_is_named() -> None:
    class Redirect(SilentHandler):
        def do_GET(self) -> None:
            self.send_response(308)
            self.send_header("Location", "https://example.com/health/live")
            self.end_headers()

    with serving(http_server(Redirect)) as redirecting:
        url = f"http://127.0.0.1:{redirecting.server_port}"
        findings = {finding.name: finding.message for finding in run_checks(proxy.checks(url, "sk-any", 0))}
    assert f"{url} redirects to https://example.com/health/live. Give --url the address" in findings["proxy"]


def test_checks_without_a_key_are_skipped_and_a_wrong_key_is_named(shared: Server) -> None:
    without = {finding.name: finding for finding in run_checks(proxy.checks(shared.url, "", 0))}
    assert {name for name, finding in without.items() if finding.status == SKIPPED} == {
        "body size",
        "buffering",
        "WebSocket",
        "silent request",
    }
    # A proxy that removes the header has the same effect.
    wrong = {finding.name: finding.message for finding in run_checks(proxy.checks(shared.url, "sk-wrong", 0))}
    assert {name for name, message in wrong.items() if "let the proxy pass the header Authorization on" in message} == {
        "body size",
        "buffering",
        "WebSocket",
    }


@contextmanager
def tls_server(folder: Path, days: int) -> Iterator[int]:
    """Accept TLS connections with a certificate for 127.0.0.1, which is self-signed, and yield the port."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now - datetime.timedelta(days=1))
    builder = builder.not_valid_after(now + datetime.timedelta(days=days, hours=1))
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = builder.add_extension(names, critical=False).sign(key, SHA256())
    file = folder / "server.pem"
    key_text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(key_text + certificate.public_bytes(Encoding.PEM))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)

    def accept() -> None:
        while True:
            try:
                link, _ = listening.accept()
            except OSError:
                return
            try:
                context.wrap_socket(link, server_side=True).close()
            except OSError:
                link.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(("days", "message"), [(5, "ends in 5 days"), (90, "valid for 90 days")])
def test_days_of_a_certificate_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: int, message: str) -> None:
    with tls_server(tmp_path, days) as port:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "server.pem"))
        ((_, sentence),) = proxy.check_tls(f"https://127.0.0.1:{port}")
        assert message in sentence


def test_an_unknown_certificate_is_a_failure(tmp_path: Path) -> None:
    with tls_server(tmp_path, 90) as port:
        ((status, sentence),) = proxy.check_tls(f"https://127.0.0.1:{port}")
    assert (status, "is not accepted" in sentence) == (FAILED, True)
