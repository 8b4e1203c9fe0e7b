"""Clients of a server of an earlier version: requests of the API, commands, and a signed-in browser."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2

from tests.support import plain_http
from tests.support.upgrade.versions import API_KEY

LIMIT_S: Final = 60.0


@dataclass(frozen=True)
class OldServer:
    """Running server of the checkout `code`."""

    url: str
    code: Path
    environ: dict[str, str]

    def ask(self, method: str, path: str, key: str = API_KEY, **how: Any) -> dict[str, Any]:
        """Send a request to the API and return the object. Raises SystemExit for an error."""
        headers = {"Authorization": f"Bearer {key}"}
        answer = plain_http.request(method, f"{self.url}/v1/{path}", headers=headers, timeout=LIMIT_S, **how)
        if answer.is_error:
            raise SystemExit(f"{method} {path}: {answer.status_code} {answer.text}")
        result: dict[str, Any] = answer.json()
        return result

    def respond(self, key: str = API_KEY, **body: Any) -> dict[str, Any]:
        """Create a response."""
        return self.ask("POST", "responses", key, json={"model": "tape", "input": "Hi", **body})

    def manage(self, *arguments: str) -> str:
        """Run `manage.py` and return the output."""
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.run(
            command, cwd=self.code, env=self.environ, capture_output=True, text=True, check=True
        ).stdout.strip()

    @contextmanager
    def browser(self) -> Iterator[Browser]:
        """Sign in as the operator."""
        with signed_in(self.url, self.manage("signin", "--url", self.url).split()[-1]) as client:
            yield Browser(client)


@contextmanager
def signed_in(url: str, link: str) -> Iterator[httpx2.Client]:
    """Open a sign-in link and yield the client with the session."""
    with plain_http.client(base_url=url, follow_redirects=True, timeout=LIMIT_S) as client:
        page = client.get(link)
        if "sign-in" in str(page.url):
            page = client.post(link, data={"csrfmiddlewaretoken": csrf_token(page.text)}, headers={"Referer": url})
        assert page.status_code == 200, page.text
        yield client


def csrf_token(page: str) -> str:
    """Return the token of the first form of a page."""
    match = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert match is not None, page
    return match[1]


@dataclass(frozen=True)
class Browser:
    """Signed-in browser that sends forms."""

    client: httpx2.Client

    def post(self, path: str, form_page: str = "/keys", **fields: str) -> str:
        """Send a form with the token of the page `form_page`, and return the page of the answer."""
        token = csrf_token(self.client.get(form_page).text)
        headers = {"Referer": str(self.client.base_url)}
        page = self.client.post(path, data={"csrfmiddlewaretoken": token, **fields}, headers=headers)
        assert page.status_code == 200, page.text
        return page.text
