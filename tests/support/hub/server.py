"""Model hub on a free port: repositories with files of this machine, in the hub's layout, and faults on request."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.http_server import SilentHandler

# Files above this size are in the large file storage, which names their SHA-256.
LFS_SIZE = 100_000
BLOCK = 65536


@dataclass
class HubRepository:
    """Repository of the hub. A `token` is needed to see the repository; with `gated_token` only files need a token."""

    name: str
    files: dict[str, bytes]
    token: str = ""
    gated_token: str = ""
    base_model: str = ""
    # Sizes that the hub names in place of the real ones.
    claimed_sizes: dict[str, int] = field(default_factory=dict)

    @property
    def commit(self) -> str:
        """Return a commit id that changes with the files."""
        digest = hashlib.sha1(usedforsecurity=False)
        for path, content in sorted(self.files.items()):
            digest.update(path.encode() + hashlib.sha256(content).digest())
        return digest.hexdigest()

    def etag(self, path: str) -> str:
        """Return the SHA-256 of a large file, the Git id of a small file."""
        content = self.files[path]
        if self.is_lfs(path):
            return hashlib.sha256(content).hexdigest()
        return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()

    def is_lfs(self, path: str) -> bool:
        """Return True for a file of the large file storage."""
        return len(self.files[path]) > LFS_SIZE or path in self.claimed_sizes

    def tree(self) -> list[dict[str, Any]]:
        """Return the list of files as the hub does."""
        return [self._entry(path) for path in sorted(self.files)]

    def _entry(self, path: str) -> dict[str, Any]:
        size = self.claimed_sizes.get(path, len(self.files[path]))
        git_id = hashlib.sha1(path.encode(), usedforsecurity=False).hexdigest() if self.is_lfs(path) else self.etag(path)
        entry: dict[str, Any] = {"type": "file", "path": path, "size": size, "oid": git_id}
        if self.is_lfs(path):
            entry["lfs"] = {"oid": self.etag(path), "size": size, "pointerSize": 134}
        return entry


class ModelHub:
    """Hub server. `cut_after` bytes of each answer a connection breaks, `corrupt` changes bytes."""

    def __init__(self) -> None:
        self.repositories: dict[str, HubRepository] = {}
        self.requests: list[tuple[str, str, str]] = []
        # Bytes of an answer with a large file after which the connection breaks; one number for each answer.
        self.cuts: list[int] = []
        self.corrupt: set[str] = set()
        self.status = 0
        # Statuses of the next answers, one for each; 0 for an answer without a failure, -1 for a connection that breaks.
        self.first_statuses: list[int] = []
        # Files of a page of a list.
        self.page_size = 1000
        self.ignores_ranges = False
        # Content in place of the real content of a file, and of every answer of the API.
        self.replaced: dict[str, bytes] = {}
        self.api_page = b""
        self.retry_after = ""
        # Address to which the hub redirects the paths that begin with a text, and the address of the next pages of lists.
        self.redirects: dict[str, str] = {}
        self.next_url = ""
        # Tokens of the requests, "" for a request without.
        self.tokens: set[str] = set()
        # Called before each block of a large file.
        self.before_block: Callable[[], object] = lambda: None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add(self, name: str, files: Mapping[str, bytes], **options: Any) -> HubRepository:
        """Add a repository."""
        self.repositories[name] = HubRepository(name, dict(files), **options)
        return self.repositories[name]

    def add_folder(self, name: str, folder: Path, **options: Any) -> HubRepository:
        """Add a repository with the files of a folder."""
        return self.add(name, {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}, **options)

    def ranges(self, file: str) -> list[str]:
        """Return the header Range of each request of a file."""
        return [
            requested_range for method, path, requested_range in self.requests if method == "GET" and path.endswith(f"/{file}")
        ]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        hub = self

        class Handler(SilentHandler):
            """Handler of the API and of the files."""

            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                """Answer a request."""
                hub.requests.append((self.command, self.path, self.headers.get("Range", "")))
                HubRequestHandler(hub, self).send()

            do_HEAD = do_GET

        return Handler


class HubRequestHandler:
    """Answer to a request of the hub."""

    def __init__(self, hub: ModelHub, request: BaseHTTPRequestHandler) -> None:
        self.hub, self.request = hub, request
        parts = urlsplit(request.path)
        self.path, self.query = unquote(parts.path), parse_qs(parts.query)
        self.token = request.headers.get("Authorization", "").removeprefix("Bearer ")

    def send(self) -> None:
        """Send a list, information about a repository, or a file."""
        self.hub.tokens.add(self.token)
        if target := next((url for begin, url in self.hub.redirects.items() if self.path.startswith(begin)), None):
            self._send(307, b"", {"Location": target + self.request.path})
            return
        failure = self.hub.first_statuses.pop(0) if self.hub.first_statuses else 0
        if failure < 0:
            self.request.close_connection = True
        elif failure:
            self._error(failure, "", "the hub has a failure")
        elif self.hub.status:
            self._error(self.hub.status, "", "the hub has a failure")
        elif self.hub.api_page and self.path.startswith("/api/"):
            self._send(200, self.hub.api_page, {"Content-Type": "text/html"})
        elif self.path == "/api/models":
            self._search()
        elif self.path.startswith("/api/models/"):
            self._api(self.path.removeprefix("/api/models/"))
        elif "/resolve/" in self.path:
            self._file()
        else:
            self._error(404, "EntryNotFound", "no page")

    def _search(self) -> None:
        word, author = self.query.get("search", [""])[0].lower(), self.query.get("author", [""])[0]
        names = [name for name in self.hub.repositories if word in name.lower() and name.startswith(author)]
        self._json([{"id": name, "_id": name} for name in names if not self.hub.repositories[name].token])

    def _api(self, path_after_model: str) -> None:
        name, _, revision = path_after_model.partition("/revision/")
        name, _, tree = name.partition("/tree/")
        repository = self._repository(name, revision or tree or "main")
        if repository is None:
            return
        if tree:
            self._tree(repository)
            return
        siblings = [{"rfilename": path} for path in repository.files]
        card = {"cardData": {"base_model": repository.base_model}} if repository.base_model else {}
        gated = {"gated": "auto"} if repository.gated_token else {}
        self._json({"id": name, "sha": repository.commit, "siblings": siblings, **card, **gated})

    def _tree(self, repository: HubRepository) -> None:
        begin = int(self.query.get("cursor", ["0"])[0])
        end, entries = begin + self.hub.page_size, repository.tree()
        url = f"{self.hub.next_url or self.hub.url}{self.path}?recursive=true&cursor={end}"
        self._json(entries[begin:end], {"Link": f'<{url}>; rel="next"'} if end < len(entries) else {})

    def _repository(self, name: str, revision: str) -> HubRepository | None:
        repository = self.hub.repositories.get(name)
        if self.token == "wrong":
            self._error(401, "", "Invalid credentials in Authorization header")
        elif repository is None or (repository.token and self.token != repository.token):
            self._error(404 if self.token else 401, "RepoNotFound", "Repository not found")
        elif revision not in ("main", repository.commit):
            self._error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        else:
            return repository
        return None

    def _file(self) -> None:
        name, _, place = self.path.lstrip("/").partition("/resolve/")
        revision, _, path = place.partition("/")
        repository = self._repository(name, revision)
        if repository is None:
            return
        if repository.gated_token and self.token != repository.gated_token:
            self._error(403 if self.token else 401, "GatedRepo", f"Access to model {name} is restricted")
        elif path not in repository.files:
            self._error(404, "EntryNotFound", "Entry not found")
        else:
            self._content(repository, path)

    def _content(self, repository: HubRepository, path: str) -> None:
        content = self.hub.replaced.get(path, repository.files[path])
        begin = int(self.request.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        begin = 0 if self.hub.ignores_ranges else begin
        if path in self.hub.corrupt:
            content = content[:-1] + bytes([content[-1] ^ 1])
        if begin and begin >= len(content):
            self._send(416, b"", {"Content-Range": f"bytes */{len(content)}"})
            return
        self.request.send_response(206 if begin else 200)
        self.request.send_header("ETag", f'"{repository.etag(path)}"')
        self.request.send_header("X-Repo-Commit", repository.commit)
        if repository.is_lfs(path):
            self.request.send_header("X-Linked-ETag", f'"{repository.etag(path)}"')
            self.request.send_header("X-Linked-Size", str(len(content)))
        if begin:
            self.request.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.request.send_header("Content-Length", str(len(content) - begin))
        self.request.end_headers()
        if self.request.command == "GET":
            self._body(content[begin:], repository.is_lfs(path))

    def _body(self, content: bytes, is_large: bool) -> None:
        cut = self.hub.cuts.pop(0) if is_large and self.hub.cuts else len(content)
        try:
            for begin in range(0, min(cut, len(content)), BLOCK):
                if is_large:
                    self.hub.before_block()
                self.request.wfile.write(content[begin : min(begin + BLOCK, cut)])
        except OSError:
            self.request.close_connection = True
        if cut < len(content):
            self.request.close_connection = True

    def _json(self, value: Any, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json", **headers})

    def _error(self, status: int, code: str, message: str) -> None:
        headers = {"X-Error-Message": message, **({"X-Error-Code": code} if code else {})}
        if self.hub.retry_after:
            headers["Retry-After"] = self.hub.retry_after
        self._send(status, json.dumps({"error": message}).encode(), headers)

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.request.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.request.send_header(name, value)
        self.request.end_headers()
        if self.request.command == "GET":
            self.request.wfile.write(body)
