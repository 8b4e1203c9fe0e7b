"""nginx, Caddy and HAProxy of Debian with the files below deploy/, on free ports and with a certificate for localhost."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from responses_app.installation.data_dir import ROOT
from tests.support.server.serve_command import free_port
from tests.support.waiting import wait_until

DEPLOY = ROOT / "deploy"
# Debian puts servers into a folder that is not in every PATH.
PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
START_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Proxy:
    """Running proxy: `port` takes TLS, `plain_port` redirects, `context` trusts the certificate, `log` has its lines."""

    name: str
    port: int
    plain_port: int
    context: ssl.SSLContext
    log: Path

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    def client(self, **options: object) -> httpx2.Client:
        return httpx2.Client(base_url=self.url, verify=self.context, timeout=60, **options)  # type: ignore[arg-type]


def missing(name: str) -> str:
    """Return why the tests of a proxy cannot run, or an empty text."""
    return (
        ""
        if shutil.which(name, path=PATH)
        else f"there is no {name}; on Debian: apt-get install -y --no-install-recommends {name}"
    )


@contextmanager
def proxy(name: str, upstream_port: int, folder: Path, *other_ports: int) -> Iterator[Proxy]:
    """Run a proxy in front of a server until the context ends; nginx in front of several servers too."""
    folder.mkdir(parents=True)
    write_certificate(folder)
    port, plain_port = free_port(), free_port()
    command, authority, environ = COMMANDS[name](folder, port, plain_port, upstream_port)
    for other_port in other_ports:
        line = f"    server 127.0.0.1:{upstream_port} max_fails=0;\n"
        more = line.replace(str(upstream_port), str(other_port))
        (folder / "verbatim.conf").write_text(changed(folder / "verbatim.conf", {line: line + more}))
    log = folder / "log"
    with log.open("wb") as out:
        program = str(shutil.which(command[0], path=PATH))
        process = subprocess.Popen([program, *command[1:]], stdout=out, stderr=out, env={**os.environ, **environ})
    try:
        context = ssl.create_default_context()

        def is_ready() -> bool:
            assert process.poll() is None, log.read_text()
            if not authority.exists():
                return False
            context.load_verify_locations(authority)
            try:
                return httpx2.get(f"https://localhost:{port}/health/ready", verify=context).status_code == 200
            except httpx2.TransportError:
                return False

        wait_until(is_ready, limit_s=START_LIMIT_S, poll_s=0.1, explain=log.read_text)
        yield Proxy(name, port, plain_port, context, log)
    finally:
        process.terminate()
        process.wait(60)


def changed(file: Path, replacements: Mapping[str, str]) -> str:
    """Return the text of a file with other ports and paths. Each text must occur."""
    text = file.read_text()
    for old, new in replacements.items():
        assert old in text, f"{file} has no {old!r}"
        text = text.replace(old, new)
    return text


def _nginx(folder: Path, port: int, plain_port: int, upstream: int) -> tuple[list[str], Path, dict[str, str]]:
    replacements = {
        "listen 443 ": f"listen 127.0.0.1:{port} ",
        "listen 80;": f"listen 127.0.0.1:{plain_port};",
        "127.0.0.1:8000": f"127.0.0.1:{upstream}",
        "server_name verbatim.example.com;": "server_name localhost;",
        "/etc/letsencrypt/live/verbatim.example.com": str(folder),
        "/var/log/nginx/verbatim.log": str(folder / "log"),
    }
    (folder / "verbatim.conf").write_text(changed(DEPLOY / "nginx" / "verbatim.conf", replacements))
    paths = "".join(f"{kind}_temp_path {folder}/{kind}; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root; " if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"{user}daemon off; pid {folder}/pid; error_log stderr;\n"
        f"events {{}}\nhttp {{ access_log off; {paths}include {folder}/verbatim.conf; }}\n"
    )
    return ["nginx", "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")], folder / "fullchain.pem", {}


def _caddy(folder: Path, port: int, plain_port: int, upstream: int) -> tuple[list[str], Path, dict[str, str]]:
    """Caddy makes its own certificate. The test keeps Caddy's authority out of the certificates of the machine."""
    options = f"admin off\n\tskip_install_trust\n\thttp_port {plain_port}\n\thttps_port {port}"
    (folder / "Caddyfile").write_text(changed(DEPLOY / "caddy" / "Caddyfile", {"admin off": options}))
    environ = {
        "SITE_ADDRESS": "localhost",
        "UPSTREAM": f"127.0.0.1:{upstream}",
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
    }
    authority = folder / "caddy" / "pki" / "authorities" / "local" / "root.crt"
    return ["caddy", "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"], authority, environ


def _haproxy(folder: Path, port: int, plain_port: int, upstream: int) -> tuple[list[str], Path, dict[str, str]]:
    replacements = {
        "log /dev/log local0": "log stdout format raw local0",
        "bind :443 ": f"bind 127.0.0.1:{port} ",
        "bind :80\n": f"bind 127.0.0.1:{plain_port}\n",
        "/etc/haproxy/cert.pem": str(folder / "cert.pem"),
        "127.0.0.1:8000": f"127.0.0.1:{upstream}",
        "    server b 127.0.0.1:8001\n": "",
    }
    (folder / "haproxy.cfg").write_text(changed(DEPLOY / "haproxy" / "haproxy.cfg", replacements))
    return ["haproxy", "-db", "-f", str(folder / "haproxy.cfg")], folder / "fullchain.pem", {}


COMMANDS: Mapping[str, Callable[[Path, int, int, int], tuple[list[str], Path, dict[str, str]]]] = {
    "nginx": _nginx,
    "caddy": _caddy,
    "haproxy": _haproxy,
}


def write_certificate(folder: Path) -> None:
    """Write `fullchain.pem`, `privkey.pem`, and `cert.pem` with both, for localhost."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    chain = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    for file, content in (("fullchain.pem", chain), ("privkey.pem", private), ("cert.pem", chain + private)):
        (folder / file).write_bytes(content)
