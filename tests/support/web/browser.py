"""Time limits of the browser, and errors that a page reports."""

from __future__ import annotations

from playwright.sync_api import ConsoleMessage, Page, Response

LIMIT_MS = 30_000


class PageErrors:
    """Console errors, page errors and failed requests of a page."""

    def __init__(self, page: Page) -> None:
        self.seen: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.seen.append(str(error)))
        page.on("response", self._response)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.seen.append(f"{message.text} {message.location['url']}")

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.seen.append(f"{response.status} {response.url}")
