"""Make the pictures of the documentation: `python -m bench.screenshots`, of a server started with demo-chat, or of a running one."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from bench.support.servers import ROOT

INTO = ROOT / "docs" / "screenshots"
COLOURS = 200
START_LIMIT = 400.0
ANSWER_LIMIT_MS = 120_000
MODEL = "demo-chat"
TOOL = {
    "type": "function",
    "name": "get_weather",
    "description": "Get the current weather for a location.",
    "parameters": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
}
# What is asked, so that a list has something to show.
QUESTIONS: tuple[dict[str, Any], ...] = (
    {"input": "Hello!"},
    {"input": "What is 12 + 30?", "metadata": {"suite": "sums"}},
    {"input": "What is 7 * 6?", "metadata": {"suite": "sums"}},
    {"input": "Hi! My name is Ada.", "metadata": {"user": "ada"}},
    {"input": "What is the capital of Italy?"},
    {"input": "Tell me a story about a fox.", "max_output_tokens": 96},
    {"input": "Say pong"},
    {"input": "What is the capital of France?", "background": True},
    {"input": "Tell me a short story about a lighthouse."},
    {"input": "What is 25 + 17?", "metadata": {"suite": "sums"}},
)


def main() -> None:
    """Take all screenshots."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="the data folder of a bin/serve that runs, with --port (default: start one)")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        data = options.data or stack.enter_context(_server(options.port))
        url, key = f"http://127.0.0.1:{options.port}", (data / "api_key").read_text().strip()
        uid = _asked(url, key)
        browser = stack.enter_context(sync_playwright()).chromium.launch(executable_path=shutil.which("chromium"))
        INTO.mkdir(exist_ok=True)
        for name, (scheme, draw) in SHOTS.items():
            page = _person(browser, data, url, scheme)
            draw(page, url, uid)
            _keep(page, name)
            page.context.close()
        browser.close()


@contextlib.contextmanager
def _server(port: int) -> Iterator[Path]:
    """A bin/serve in a folder that goes afterwards."""
    with tempfile.TemporaryDirectory(prefix="verbatim-pictures-") as folder:
        environ = {**os.environ, "RESPONSES_DATA_DIR": folder}
        command = [str(ROOT / "bin" / "serve"), "--port", str(port), "--model", MODEL]
        process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert process.stdout is not None
        try:
            deadline = time.monotonic() + START_LIMIT
            for line in process.stdout:
                if "Ctrl-C stops it." in line:
                    break
                assert time.monotonic() < deadline, line
            yield Path(folder)
        finally:
            process.terminate()
            process.communicate(timeout=60)


def _asked(url: str, key: str) -> str:
    """Send all requests; return the id of a response with reasoning, a tool call and an answer."""

    def ask(**body: Any) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {key}"}
        answer = httpx2.post(
            f"{url}/v1/responses", json={"model": MODEL, "temperature": 0, **body}, headers=headers, timeout=300
        )
        response: dict[str, Any] = answer.raise_for_status().json()
        return response

    for question in QUESTIONS:
        first = ask(**question)
        if "name" in question["input"]:
            ask(input="What is my name?", previous_response_id=first["id"], metadata=question["metadata"])
    called = ask(input="What is the weather in Oslo?", tools=[TOOL], reasoning={"effort": "medium"})
    outputs = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": '{"temperature": 4, "condition": "snow"}'}
        for item in called["output"]
        if item["type"] == "function_call"
    ]
    if outputs:
        ask(input=outputs, tools=[TOOL], previous_response_id=called["id"])
    return str(called["id"])


def _person(browser: Browser, data: Path, url: str, scheme: Any) -> Page:
    """The operator, at a screen of the usual size."""
    page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme=scheme)
    command = [str(ROOT / ".venv" / "bin" / "python"), str(ROOT / "manage.py"), "signin", "--url", url]
    environ = {**{name: value for name, value in os.environ.items() if name != "DATABASE_URL"}, "RESPONSES_DATA_DIR": str(data)}
    printed = subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout
    login_link = re.search(r"http\S+", printed)
    assert login_link
    page.goto(login_link[0])
    return page


def _list(page: Page, url: str, _uid: str) -> None:
    page.goto(f"{url}/responses")


def _response(page: Page, url: str, uid: str) -> None:
    page.goto(f"{url}/responses/{uid}")
    for summary in page.locator("#answered summary").all():
        summary.click()


def _events(page: Page, url: str, uid: str) -> None:
    page.goto(f"{url}/responses/{uid}/events")


def _chat(page: Page, url: str, _uid: str) -> None:
    page.goto(f"{url}/chat")
    settings = page.locator("details.settings > summary")
    settings.click()
    page.get_by_label("Temperature").fill("0")
    page.get_by_label("Max output tokens").fill("200")
    settings.click()
    _send_message(page, "Hi! My name is Ada.")
    tools = page.locator("details.tool-menu > summary")
    tools.click()
    page.get_by_label("Weather", exact=True).check()
    tools.click()
    _send_message(page, "What is the weather in Oslo?")
    expect(page.locator("article.model")).to_have_count(3, timeout=ANSWER_LIMIT_MS)
    expect(page.locator("[aria-busy=true]")).to_have_count(0, timeout=ANSWER_LIMIT_MS)


def _send_message(page: Page, text: str) -> None:
    before = page.locator("article.model").count()
    page.get_by_label("Message", exact=True).fill(text)
    page.get_by_label("Message", exact=True).press("Enter")
    expect(page.locator("article.model")).to_have_count(before + 1)
    expect(page.locator("article.model").nth(before)).to_have_attribute("aria-busy", "false", timeout=ANSWER_LIMIT_MS)


SHOTS: dict[str, tuple[str, Callable[[Page, str, str], None]]] = {
    "responses": ("light", _list),
    "conversation": ("light", _response),
    "events": ("dark", _events),
    "chat": ("dark", _chat),
}


def _keep(page: Page, name: str) -> None:
    """Store a screenshot as a PNG of few colours."""
    page.mouse.move(0, 0)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    picture.save(INTO / f"{name}.png", optimize=True)
    print(f"{name}.png: {(INTO / f'{name}.png').stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
