"""HTTP server of test images: answers by path, in a thread, and records requests."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.http_server import SilentHandler, http_server, serving

HOST = "pictures.example"


class ImageServer:
    """Contents by path: bytes, or a function called with the request handler. `requests` are the requested paths and Host headers."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes | Callable[[BaseHTTPRequestHandler], None]] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.port = 0

    def url(self, path: str, host: str = HOST, scheme: str = "http") -> str:
        """Return the URL of a path."""
        return f"{scheme}://{host}:{self.port}{path}"


@contextmanager
def run_image_server(certificate: ssl.SSLContext | None = None) -> Iterator[ImageServer]:
    """Run a server on the loopback interface."""
    here = ImageServer()

    class ImageHandler(SilentHandler):
        def do_GET(self) -> None:
            here.requests.append((self.path, self.headers["Host"]))
            page = here.pages.get(self.path)
            if page is None:
                self.send_error(404)
            elif isinstance(page, bytes):
                answer(self, page)
            else:
                page(self)

    server = http_server(ImageHandler)
    server.handle_error = lambda *args: None  # type: ignore[method-assign]  # Clients that hang up are what is tested.
    if certificate is not None:
        server.socket = certificate.wrap_socket(server.socket, server_side=True)
    here.port = server.server_port
    with serving(server):
        yield here


def answer(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, **headers: str) -> None:
    """Send a complete response; header names are written with underscores."""
    handler.send_response(status)
    for name, value in {"content_type": "image/png", "content_length": str(len(body)), **headers}.items():
        if value:
            handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def moved(to: str, status: int = 302) -> Callable[[BaseHTTPRequestHandler], None]:
    """Create a redirect."""
    return lambda handler: answer(handler, b"", status, location=to)


def dripping(seconds: float) -> Callable[[BaseHTTPRequestHandler], None]:
    """Create a page sent byte by byte for `seconds`, with short pauses, which never ends."""

    def drip(handler: BaseHTTPRequestHandler) -> None:
        answer(handler, b"", content_length="1000000")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            handler.wfile.write(b"x")
            time.sleep(0.05)  # The slow sender is the subject: a byte comes long before the limit of a single read.

    return drip


def certificate(folder: Path, name: str = HOST, hours: int = 1) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Create a server certificate for `name`, which ends in `hours`, and a client context that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(hours=hours))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = signed.public_bytes(serialization.Encoding.PEM)
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = folder / "server.pem"
    file.write_bytes(key.private_bytes(*plain) + pem)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    return server, ssl.create_default_context(cadata=pem.decode())
