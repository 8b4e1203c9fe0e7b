"""Chat page with MCP servers of the operator: running calls, results and decided turns in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.support.server.serve_command import Server
from tests.support.waiting import wait_until
from tests.support.web.chat_visitor import Visitor, matching_tape

pytestmark = pytest.mark.browser
# Width of a decoded image in pixels; 0 if the browser cannot show it.
WIDTH = "image => image.decode().then(() => image.naturalWidth, () => 0)"


def call(tool: str, **arguments: Any) -> str:
    """Return the generated text of a call of a tool of the server `files`."""
    channel = f"<|channel|>commentary to=functions.files__{tool} <|constrain|>json<|message|>"
    return f"{channel}{json.dumps(arguments)}<|call|>"


def answer(text: str) -> str:
    return f"<|channel|>final<|message|>{text}<|return|>"


# Texts that the model generates for each message of a person, one after the other. FOLDER is the folder of the tape.
TEXTS = {
    "Delete the file": (call("delete", path="a<b>.txt"), answer("It is gone.")),
    "Wait for me": (call("wait", entered="FOLDER/entered", gate="FOLDER/gate"), answer("It is done.")),
    "Do fail": (call("fail", reason="no <disk>"), answer("Well.")),
    "Do long": (call("long", size=5000), answer("Well.")),
    "Do structured": (call("structured", name="Ada"), answer("Well.")),
    "Do twenty": (*(call("structured", name=f"Ada {n}") for n in range(20)), answer("Well.")),
    "Do picture": (call("picture"), answer("Well.")),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the tape, and of the files of the tool `wait`."""
    return tmp_path_factory.mktemp("tools")


@pytest.fixture(scope="module")
def chat_server(folder: Path, mcp_url: str) -> Iterator[Server]:
    """Start a server with the recordings and the MCP server of the tests."""
    # By a URL: the start of a program takes more CPU than all that a test does.
    servers = json.dumps({"files": {"url": mcp_url}})
    with Server(folder / "data", "--engine", matching_tape(folder, TEXTS), RESPONSES_MCP_SERVERS=servers) as server:
        yield server.ready()


@pytest.fixture(autouse=True)
def files_server(visitor: Visitor) -> None:
    """Switch the MCP server on: a new visitor has chosen none."""
    visitor.use_server("files")


def approve(visitor: Visitor, name: str) -> None:
    visitor.page.get_by_role("button", name=f"Approve {name}").click()


def card(visitor: Visitor, name: str) -> Locator:
    return visitor.page.get_by_role("article", name=f"Call to {name} of files")


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


def test_running_call_shows_the_seconds_until_the_result(visitor: Visitor, folder: Path) -> None:
    visitor.send("Wait for me")
    approve(visitor, "wait")
    wait_until((folder / "entered").exists, limit_s=60)
    expect(card(visitor, "wait")).to_contain_text(re.compile(r"Running… \d+ s"))
    (folder / "gate").touch()
    expect(card(visitor, "wait")).to_contain_text("Done")
    expect(visitor.last).to_contain_text("It is done.")


@pytest.mark.parametrize(
    ("name", "shown"), [("fail", "no <disk>"), ("long", "Result: 5,000 characters"), ("structured", '"name": "Ada"')]
)
def test_result_of_a_call_is_shown(visitor: Visitor, name: str, shown: str) -> None:
    visitor.send(f"Do {name}")
    approve(visitor, name)
    expect(visitor.last).to_contain_text("Well.")
    expect(card(visitor, name)).to_contain_text(shown)


def test_image_of_a_result_is_shown(visitor: Visitor) -> None:
    visitor.send("Do picture")
    approve(visitor, "picture")
    expect(visitor.last).to_contain_text("Well.")
    image = card(visitor, "picture").get_by_role("img")
    expect(image).to_have_attribute("alt", "Image 1 of this item")
    assert image.evaluate(WIDTH) == 1
    uid = visitor.page.url.rpartition("/")[2]
    visitor.page.goto(f"{visitor.server.url}/responses/{uid}")
    assert visitor.page.get_by_role("img", name="Image 1 of this item").evaluate(WIDTH) == 1


def test_rounds_of_many_calls_leave_the_question_in_view(visitor: Visitor) -> None:
    tool = {"type": "mcp", "server_label": "files", "require_approval": "never"}
    uid = visitor.server.ask(model="tools", input="Do twenty", tools=[tool]).json()["id"]
    page = visitor.page
    page.set_viewport_size({"width": 1280, "height": 620})
    page.goto(f"{visitor.server.url}/responses/{uid}")
    expect(page.locator(".round")).to_have_count(21)
    expect(page.locator("#response .view").get_by_text("Do twenty")).to_be_in_viewport()
    page.get_by_role("listbox", name="Timeline").press("End")
    expect(page.locator(".round [role=option]").last).to_be_in_viewport()


def test_a_long_state_breaks_no_word_of_the_title_on_a_phone(visitor: Visitor) -> None:
    tool = {"type": "mcp", "server_label": "files", "require_approval": "never"}
    uid = visitor.server.ask(model="tools", input="Do long", tools=[tool]).json()["id"]
    page = visitor.page
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{visitor.server.url}/responses/{uid}")
    head = page.locator(".card .head").last
    head.locator(".state").evaluate("one => (one.textContent = 'Done, the code raised ZeroDivisionError · 234 ms')")
    assert head.locator("code").evaluate(
        "one => one.getBoundingClientRect().height < 1.5 * parseFloat(getComputedStyle(one).lineHeight)"
    )
