"""Package index: an HTTP server with wheels that are made on the spot, as PyPI and PyTorch's page of links serve them."""

from __future__ import annotations

import base64
import hashlib
import io
import threading
import zipfile
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from tests.support.http_server import SilentHandler


def wheel(
    name: str, version: str, requires: tuple[str, ...] = (), scripts: Mapping[str, str] | None = None
) -> tuple[str, bytes]:
    """Make a wheel of one module; return the file name and its bytes."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    required = "".join(f"Requires-Dist: {line}\n" for line in requires)
    files = {
        f"{module}.py": f"version = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{required}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        **{f"{module}-{version}.data/scripts/{script}": text for script, text in (scripts or {}).items()},
    }
    record = "".join(f"{path},sha256={_digest(text)},{len(text)}\n" for path, text in files.items())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = (0o100755 if "/scripts/" in path else 0o100644) << 16
            archive.writestr(entry, text)
    return f"{module}-{version}-py3-none-any.whl", out.getvalue()


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


class PackageIndex:
    """Index server on a free port: `/simple/NAME/` lists the wheels of a project, `/links/` all wheels of `linked`."""

    def __init__(self) -> None:
        self.projects: dict[str, dict[str, bytes]] = {}
        self.linked: dict[str, bytes] = {}
        self.requests: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add(self, name: str, version: str, requires: tuple[str, ...] = (), scripts: Mapping[str, str] | None = None) -> None:
        """Add a wheel to the project `name`."""
        file, content = wheel(name, version, requires, scripts)
        self.projects.setdefault(name, {})[file] = content

    def page(self, path: str) -> bytes | None:
        """Return the page or the file at `path`."""
        folder, _, name = path.strip("/").partition("/")
        if folder == "simple" and name in self.projects:
            return _links(self.projects[name])
        if folder == "links" and self.linked:
            return _links(self.linked)
        if folder == "files":
            return {**self.linked, **{file: data for files in self.projects.values() for file, data in files.items()}}.get(name)
        return None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        index = self

        class PackageIndexHandler(SilentHandler):
            """Handler of GET and HEAD requests for the pages of the index."""

            def do_GET(self) -> None:
                """Answer with the page, or with 404."""
                index.requests.append(self.path)
                body = index.page(self.path.replace("%2B", "+"))
                self.send_response(404 if body is None else 200)
                self.send_header("Content-Type", "application/octet-stream" if ".whl" in self.path else "text/html")
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body or b"")

            do_HEAD = do_GET

        return PackageIndexHandler


def _links(files: Mapping[str, bytes]) -> bytes:
    lines = (f'<a href="/files/{name}#sha256={hashlib.sha256(data).hexdigest()}">{name}</a>' for name, data in files.items())
    return f"<!DOCTYPE html><html><body>{''.join(lines)}</body></html>".encode()
