"""Process of the provider for tests, and a person with a browser without JavaScript."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import httpx2

from tests.support import plain_http
from tests.support.oidc.program import CLIENT_ID, CLIENT_SECRET
from tests.support.server.serve_command import free_port
from tests.support.waiting import wait_until


class Provider:
    """OpenID Connect provider at `localhost`, so that a browser keeps its cookies apart from those of the server at 127.0.0.1."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"http://localhost:{self.port}"
        self.log = folder / "provider.log"
        program = [sys.executable, "-m", "tests.support.oidc.program", str(self.port), str(folder)]
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(program, stdout=out, stderr=out)
        wait_until(self._is_ready, limit_s=60, explain=self.log.read_text)

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            return plain_http.get(f"{self.url}/login", timeout=5).status_code == 200
        except httpx2.HTTPError:
            return False

    @property
    def environ(self) -> dict[str, str]:
        """Return the settings of a server for this provider."""
        return {
            "RESPONSES_OIDC_ISSUER": f"{self.url}/o",
            "RESPONSES_OIDC_CLIENT_ID": CLIENT_ID,
            "RESPONSES_OIDC_CLIENT_SECRET": CLIENT_SECRET,
        }

    def control(self, **values: object) -> None:
        """Set `callback` with `client_secret`, or `groups` by person."""
        assert plain_http.post(f"{self.url}/control", json=values, timeout=180).status_code == 200

    def set_groups(self, name: str, groups: Sequence[str]) -> None:
        """Set the groups of a person."""
        self.control(groups={name: groups})

    def end(self) -> None:
        """End the process."""
        self.process.terminate()
        self.process.wait(60)


class Colleague:
    """Person with a browser. `start` leads to the provider, `enter` signs in there and comes back."""

    def __init__(self, server_url: str, name: str) -> None:
        self.server_url, self.name = server_url, name
        self.browser = plain_http.client(follow_redirects=True, timeout=180)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.browser.close()

    def get(self, path: str) -> httpx2.Response:
        """Fetch a page of the server."""
        return self.browser.get(f"{self.server_url}{path}")

    def start(self, path: str = "/sign-in/oidc/start") -> httpx2.URL:
        """Return the address at the provider to which the server leads."""
        answer = self.browser.get(f"{self.server_url}{path}", follow_redirects=False)
        assert answer.status_code == 302, answer.text
        return httpx2.URL(answer.headers["location"])

    def enter(self, path: str = "/sign-in/oidc/start") -> httpx2.Response:
        """Sign in at the provider. Return the page of the server behind the way back."""
        page = self.browser.get(self.start(path))
        if page.url.path == "/login":
            page = self.browser.post(page.url, data={"username": self.name})
        return page
