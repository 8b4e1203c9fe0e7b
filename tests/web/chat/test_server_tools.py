"""Chat page with MCP servers of the operator: running calls, results and decided turns in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openai_harmony import load_harmony_encoding
from playwright.sync_api import Browser, Locator, expect

from responses_app.local.data_dir import ROOT
from tests.support.mcp.serving import STDIO
from tests.support.server.serve_command import Server
from tests.support.waiting import wait_until
from tests.support.web.chat_visitor import Visitor

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
SERVERS = {"files": {"command": list(STDIO), "env": {"PYTHONPATH": str(ROOT)}}}


# Width of a decoded image in pixels; 0 if the browser cannot show it.
WIDTH = "image => image.decode().then(() => image.naturalWidth, () => 0)"


def call(tool: str, **arguments: Any) -> str:
    """Return the generated text of a call of a tool of the server `files`."""
    channel = f"<|channel|>commentary to=functions.files__{tool} <|constrain|>json<|message|>"
    return f"{channel}{json.dumps(arguments)}<|call|>"


def answer(text: str) -> str:
    return f"<|channel|>final<|message|>{text}<|return|>"


def tape(folder: Path, *texts: str) -> str:
    """Write recordings of `texts`, which the engine plays in order. Return the URL of the engine."""
    encoding = load_harmony_encoding("HarmonyGptOss")
    path = folder / "tools.jsonl"
    lines = [{"chunks": [{"tokens": encoding.encode(text, allowed_special="all")}]} for text in texts]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return f"script://{path}"


@pytest.fixture
def visitor(request: pytest.FixtureRequest, tmp_path: Path, chromium: Browser) -> Iterator[Visitor]:
    """Open the chat page of a server whose model generates the texts of the parameter, with `FOLDER` replaced."""
    texts = [text.replace("FOLDER", str(tmp_path)) for text in request.param]
    server = Server(tmp_path / "data", "--engine", tape(tmp_path, *texts), RESPONSES_MCP_SERVERS=json.dumps(SERVERS))
    try:
        page = chromium.new_page()
        page.goto(server.ready().manage("signin", "--url", server.url))
        visitor = Visitor(server, chromium, storage_state=page.context.storage_state())
        yield visitor
        visitor.close()
    finally:
        server.end()
    assert visitor.errors.seen == []


def approve(visitor: Visitor, name: str) -> None:
    visitor.page.get_by_role("button", name=f"Approve {name}").click()


def card(visitor: Visitor, name: str) -> Locator:
    return visitor.page.get_by_role("region", name=f"Call to {name} of files")


@pytest.mark.parametrize("visitor", [[call("delete", path="a<b>.txt"), answer("It is gone.")]], indirect=True)
def test_decided_turn_cannot_be_generated_again(visitor: Visitor) -> None:
    visitor.send("Delete the file")
    approve(visitor, "delete")
    expect(visitor.last).to_contain_text("It is gone.")
    visitor.wait_for_end()
    expect(card(visitor, "delete")).to_contain_text("deleted a<b>.txt")
    expect(visitor.page.get_by_role("button", name="Regenerate")).to_have_count(1)
    visitor.page.reload()
    expect(visitor.last).to_contain_text("It is gone.")
    expect(visitor.page.get_by_role("button", name="Regenerate")).to_have_count(1)


@pytest.mark.parametrize(
    "visitor", [[call("wait", entered="FOLDER/entered", gate="FOLDER/gate"), answer("It is done.")]], indirect=True
)
def test_running_call_shows_the_seconds_until_the_result(visitor: Visitor, tmp_path: Path) -> None:
    visitor.send("Wait")
    approve(visitor, "wait")
    wait_until((tmp_path / "entered").exists, limit_s=60)
    expect(card(visitor, "wait")).to_contain_text(re.compile(r"Running… \d+ s"))
    (tmp_path / "gate").touch()
    expect(card(visitor, "wait")).to_contain_text("Done")
    expect(visitor.last).to_contain_text("It is done.")


@pytest.mark.parametrize(
    ("visitor", "name", "shown"),
    [
        ([call("fail", reason="no <disk>"), answer("Well.")], "fail", "no <disk>"),
        ([call("long", size=5000), answer("Well.")], "long", "Show 5,000 characters"),
        ([call("structured", name="Ada"), answer("Well.")], "structured", '"name": "Ada"'),
    ],
    indirect=["visitor"],
    ids=["error", "long", "json"],
)
def test_result_of_a_call_is_shown(visitor: Visitor, name: str, shown: str) -> None:
    visitor.send("Do it")
    approve(visitor, name)
    expect(visitor.last).to_contain_text("Well.")
    expect(card(visitor, name)).to_contain_text(shown)


@pytest.mark.parametrize("visitor", [[call("picture"), answer("Well.")]], indirect=True)
def test_image_of_a_result_is_shown(visitor: Visitor) -> None:
    visitor.send("Do it")
    approve(visitor, "picture")
    expect(visitor.last).to_contain_text("Well.")
    image = card(visitor, "picture").get_by_role("img")
    expect(image).to_have_attribute("alt", "Image of the result")
    assert image.evaluate(WIDTH) == 1
    uid = visitor.page.url.rpartition("/")[2]
    visitor.page.goto(f"{visitor.server.url}/responses/{uid}")
    assert visitor.page.get_by_role("img", name="Image 1 of this item").evaluate(WIDTH) == 1
