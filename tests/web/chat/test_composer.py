"""Message form and settings of the chat page: height, keys, invalid values, images without model support."""

from __future__ import annotations

import re
from io import BytesIO

import pytest
from PIL import Image
from playwright.sync_api import FilePayload, Route, expect

from tests.support.api.image_case import png
from tests.support.web.chat_visitor import Visitor, held

pytestmark = pytest.mark.browser
# Dispatches a paste or drop with a PNG file, as the browser does for a real one.
GIVE_IMAGE = """([selector, kind]) => {
  const data = new DataTransfer();
  data.items.add(new File([new Uint8Array(8)], "photo.png", {type: "image/png"}));
  const options = {bubbles: true, cancelable: true};
  const event = kind === "paste" ? new ClipboardEvent("paste", {...options, clipboardData: data})
                                 : new DragEvent("drop", {...options, dataTransfer: data});
  return document.querySelector(selector).dispatchEvent(event);
}"""

GIVE_TEXT = """() => {
  const data = new DataTransfer();
  data.items.add(new File(["dropped"], "dropped.txt", {type: "text/plain"}));
  document.body.dispatchEvent(new DragEvent("drop", {bubbles: true, cancelable: true, dataTransfer: data}));
}"""


def test_the_composer_shows_a_whole_line_on_load(visitor: Visitor) -> None:
    height = "document.querySelector('.frame > textarea').getBoundingClientRect().height"
    assert visitor.page.evaluate(height) >= 36
    visitor.field.fill("one\ntwo\nthree")
    visitor.page.reload()
    assert visitor.page.evaluate(height) >= 70
    visitor.field.fill("")


def test_name_of_the_model_has_room_on_a_phone(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    box = visitor.page.get_by_role("combobox", name="Model").bounding_box()
    assert box
    assert box["width"] > 250


def test_an_invalid_setting_in_the_closed_panel_is_shown(visitor: Visitor) -> None:
    settings = visitor.page.locator("details.settings")
    settings.locator("summary").click()
    visitor.page.get_by_label("Temperature").fill("9")
    settings.locator("summary").click()
    expect(visitor.page.get_by_label("Temperature")).to_be_hidden()
    visitor.press_enter("greetings")
    expect(visitor.page.get_by_label("Temperature")).to_be_focused()
    problem = settings.locator("[role=alert]")
    expect(problem).to_contain_text("Temperature: Value must be less than or equal to 2")
    visitor.page.get_by_label("Temperature").fill("0.25")
    expect(problem).to_be_empty()
    visitor.field.press("Enter")
    expect(visitor.last).to_contain_text("Hello there!")
    visitor.wait_for_end()
    assert visitor.fetched(visitor.uid)["temperature"] == 0.25


def test_settings_close_with_escape_and_with_a_click_elsewhere(visitor: Visitor) -> None:
    settings = visitor.page.locator("details.settings")
    panel = settings.locator(".panel")
    settings.locator("summary").click()
    visitor.page.get_by_label("Instructions").press("Escape")
    expect(panel).to_be_hidden()
    expect(settings.locator("summary")).to_be_focused()
    settings.locator("summary").click()
    expect(panel).to_be_visible()
    visitor.page.get_by_label("Instructions").click()
    visitor.page.get_by_label("Instructions").fill("تكلم معي")
    expect(visitor.page.get_by_label("Instructions")).to_have_css("direction", "rtl")
    visitor.page.get_by_label("Instructions").fill("")
    expect(panel).to_be_visible()
    visitor.field.click()
    expect(panel).to_be_hidden()


def test_attaching_an_image_to_a_model_without_vision_shows_a_notice(visitor: Visitor) -> None:
    notice = visitor.page.locator(".composer .notice")
    for selector, kind in (("textarea[name=text]", "paste"), ("textarea[name=text]", "drop"), ("body", "drop")):
        notice.evaluate("one => (one.textContent = '')")
        assert visitor.page.evaluate(GIVE_IMAGE, [selector, kind]) is False
        expect(notice).to_have_text("chat doesn’t accept images.")
    visitor.send_and_wait("greetings", "Hello there!")
    expect(notice).to_be_empty()


def test_images_that_the_server_would_refuse_are_not_attached(visitor: Visitor) -> None:
    page = visitor.page
    page.locator("select[name=model] option").first.evaluate("option => (option.dataset.sees = '1')")
    vast = BytesIO()
    Image.new("1", (8_000, 8_000)).save(vast, "PNG")
    images = {"seen.png": png(), "vast.png": vast.getvalue(), "broken.png": b"\x89PNG"}
    payloads = [FilePayload(name=name, mimeType="image/png", buffer=data) for name, data in images.items()]
    page.get_by_label("Attach files").set_input_files(payloads)
    expect(page.locator(".composer .notice")).to_have_text(
        "vast.png can’t be attached. Use images up to 50 megapixels."
        " broken.png can’t be attached. It isn’t an image that can be read."
    )
    expect(page.get_by_role("list", name="Attached files").get_by_role("img")).to_have_count(1)


def test_files_are_attached_by_the_button_and_by_a_drop(visitor: Visitor) -> None:
    attached = visitor.page.get_by_role("list", name="Attached files")
    long = FilePayload(name=f"{'long-' * 40}.txt", mimeType="text/plain", buffer=b"a")
    visitor.page.get_by_label("Attach files").set_input_files([long])
    # A long name takes a line, and the button keeps its size.
    expect(attached.get_by_role("button")).to_have_count(1)
    assert attached.get_by_role("listitem").evaluate("item => item.offsetHeight < 60 && item.lastChild.offsetWidth > 30")
    attached.get_by_role("button").click()
    notes = FilePayload(name="notes <b>.txt", mimeType="text/plain", buffer=b"The code word is xylophone.")
    visitor.page.get_by_label("Attach files").set_input_files([notes])
    expect(attached.get_by_role("listitem")).to_have_text(["notes <b>.txt"])
    visitor.page.evaluate(GIVE_TEXT)
    expect(attached.get_by_role("listitem")).to_have_text(["notes <b>.txt", "dropped.txt"])
    attached.get_by_role("button", name="Remove dropped.txt").click()
    expect(attached.get_by_role("button", name="Remove notes <b>.txt")).to_be_focused()
    visitor.send_and_wait("greetings", "Hello")
    expect(attached.get_by_role("listitem")).to_have_count(0)
    message = visitor.page.locator("article.person").last
    link = message.get_by_role("link", name="File: notes <b>.txt")
    # The file can be opened at once, and after a reload.
    for _ in range(2):
        expect(link).to_have_attribute("href", re.compile("^/files/file-.*/content$"))
        expect(message.locator(".message")).to_have_count(1)
        expect(message).to_contain_text("greetings")
        visitor.page.reload()
    with visitor.page.expect_download() as download:
        link.click()
    assert download.value.path().read_text() == "The code word is xylophone."


def test_a_file_over_the_page_is_shown_where_a_drop_attaches(visitor: Visitor) -> None:
    form = visitor.page.locator("form.composer")
    visitor.page.evaluate(GIVE_TEXT.replace('"drop"', '"dragover"'))
    expect(form).to_have_class("composer drop")
    visitor.page.evaluate("document.body.dispatchEvent(new DragEvent('dragleave', {bubbles: true}))")
    expect(form).to_have_class("composer")


def test_a_file_without_text_is_named_and_can_be_left_out(visitor: Visitor) -> None:
    files = [("table.xyz", bytes(range(256))), ("notes.txt", b"The code word is xylophone.")]
    payloads = [FilePayload(name=name, mimeType="application/octet-stream", buffer=data) for name, data in files]
    visitor.page.get_by_label("Attach files").set_input_files(payloads)
    expect(visitor.page.get_by_role("list", name="Attached files").get_by_role("button")).to_have_count(2)
    visitor.send("greetings")
    expect(visitor.last.get_by_role("alert")).to_contain_text("table.xyz: The file is no text.")
    visitor.errors.seen.clear()
    visitor.page.get_by_role("button", name="Edit message").click()
    visitor.page.get_by_label("table.xyz").uncheck()
    visitor.page.get_by_label("Edited message").press("Enter")
    expect(visitor.last).to_contain_text("Hello")
    message = visitor.page.locator("article.person").last
    expect(message).to_contain_text("File: notes.txt")
    expect(message).not_to_contain_text("table.xyz")


def test_a_message_waits_for_the_script_of_its_files(visitor: Visitor) -> None:
    page = visitor.page
    held: list[Route] = []
    page.route("**/attachments.js", lambda route: held.append(route))
    with page.expect_request("**/attachments.js"):
        page.get_by_label("Attach files").set_input_files([FilePayload(name="a.txt", mimeType="text/plain", buffer=b"a")])
    visitor.press_enter("greetings")
    expect(page.locator(".composer .notice")).to_have_text("A file is still being uploaded.")
    expect(page.locator(".turn")).to_have_count(0)
    held[0].continue_()
    expect(page.get_by_role("list", name="Attached files").get_by_role("button")).to_have_count(1)
    page.get_by_label("Message", exact=True).press("Enter")
    expect(page.locator("article.person").last).to_contain_text("File: a.txt")


def test_a_refused_upload_is_explained(visitor: Visitor) -> None:
    visitor.page.route(
        "**/v1/files", lambda route: route.fulfill(status=413, json={"error": {"message": "The file is too large."}})
    )
    visitor.page.get_by_label("Attach files").set_input_files([FilePayload(name="a.txt", mimeType="text/plain", buffer=b"a")])
    notice = visitor.page.locator(".composer .notice")
    expect(notice).to_have_text("a.txt can’t be attached. The file is too large.")
    visitor.page.unroute("**/v1/files")
    visitor.page.get_by_label("Attach files").set_input_files([FilePayload(name="b.txt", mimeType="text/plain", buffer=b"")])
    expect(notice).to_have_text("b.txt can’t be attached. The file is empty.")
    visitor.page.route("**/v1/files", lambda route: route.abort())
    visitor.page.get_by_label("Attach files").set_input_files([FilePayload(name="c.txt", mimeType="text/plain", buffer=b"a")])
    expect(notice).to_have_text("c.txt can’t be attached. Can’t reach the server, or read the file.")
    # The browser reports the answer, which the test made.
    visitor.errors.seen.clear()


def test_instructions_are_saved_as_presets(visitor: Visitor) -> None:
    visitor.page.locator("details.settings > summary").click()
    instructions, preset = visitor.page.get_by_label("Instructions"), visitor.page.get_by_label("Preset", exact=True)
    for name, text in (("Pirate", "Talk like a pirate."), ("Brief", "Be brief.")):
        instructions.fill(text)
        visitor.page.get_by_label("Name of the preset").fill(name)
        visitor.page.get_by_label("Name of the preset").press("Enter")
        expect(preset.get_by_role("option", name=name)).to_be_attached()
    visitor.page.reload()
    visitor.page.locator("details.settings > summary").click()
    preset.select_option("Pirate")
    expect(instructions).to_have_value("Talk like a pirate.")
    visitor.page.keyboard.press("Escape")
    visitor.send("greetings")
    visitor.wait_for_end()
    assert visitor.fetched(visitor.uid)["instructions"] == "Talk like a pirate."
    visitor.page.locator("details.settings > summary").click()
    preset.select_option("Brief")
    visitor.page.get_by_role("button", name="Delete preset").click()
    expect(preset.get_by_role("option")).to_have_text(["Presets…", "Pirate"])
    expect(preset).to_be_focused()
    # Another browser of the user has them too.
    other = visitor.page.context.browser
    assert other is not None
    page = other.new_context(storage_state=visitor.page.context.storage_state()).new_page()
    page.goto(f"{visitor.server.url}/chat")
    page.evaluate("localStorage.clear()")
    page.locator("details.settings > summary").click()
    expect(page.get_by_label("Preset", exact=True).get_by_role("option")).to_have_text(["Presets…", "Pirate"])
    page.context.close()


def test_a_name_typed_while_a_preset_is_saved_stays(visitor: Visitor) -> None:
    visitor.page.locator("details.settings > summary").click()
    name, preset = visitor.page.get_by_label("Name of the preset"), visitor.page.get_by_label("Preset", exact=True)
    held: list[Route] = []
    visitor.page.route(
        "**/chat/presets", lambda route: held.append(route) if route.request.method == "POST" else route.fallback()
    )
    visitor.page.get_by_label("Instructions").fill("Talk like a pirate.")
    name.fill("Pirate")
    with visitor.page.expect_request("**/chat/presets"):
        name.press("Enter")
    name.fill("Brief")
    held.pop().continue_()
    expect(preset.get_by_role("option", name="Pirate")).to_be_attached()
    expect(name).to_have_value("Brief")


def test_presets_of_the_browser_move_to_the_server(visitor: Visitor) -> None:
    presets = {"Old one": "Be old.", "Old two": "Be older."}
    visitor.page.evaluate("presets => localStorage.setItem('chat-presets', JSON.stringify(presets))", presets)
    visitor.page.locator("details.settings > summary").click()
    preset = visitor.page.get_by_label("Preset", exact=True)
    expect(preset.get_by_role("option", name="Old two")).to_be_attached()
    visitor.page.wait_for_function("localStorage.getItem('chat-presets') === null")
    visitor.page.reload()
    visitor.page.locator("details.settings > summary").click()
    preset.select_option("Old one")
    expect(visitor.page.get_by_label("Instructions")).to_have_value("Be old.")
    visitor.page.get_by_label("Name of the preset").fill("x" * 60)
    visitor.page.get_by_label("Instructions").fill("y" * 50_001)
    visitor.page.get_by_role("button", name="Save preset").click()
    expect(visitor.page.get_by_text("Instructions have at most 50000 characters.")).to_be_visible()
    visitor.errors.seen.clear()


def test_preset_is_saved_after_a_sign_in_in_another_tab(visitor: Visitor) -> None:
    page = visitor.page
    page.locator("details.settings > summary").click()
    page.get_by_label("Instructions").fill("Be brief.")
    page.get_by_label("Name of the preset").fill("Brief one")
    # A sign-in gives new tokens.
    (token,) = (cookie for cookie in page.context.cookies() if "csrf" in cookie["name"])
    page.context.add_cookies([{"name": token["name"], "value": "c" * 32, "url": visitor.server.url}])
    page.get_by_role("button", name="Save preset").click()
    expect(page.get_by_label("Preset", exact=True)).to_have_value("Brief one")
    assert [error for error in visitor.errors.seen if "403" not in error] == []
    visitor.errors.seen.clear()


def test_tools_are_counted_beside_their_menu(visitor: Visitor) -> None:
    visitor.choose("weather", "dice")
    expect(visitor.page.locator("details.tool-menu > summary")).to_have_text("Tools 2")
    visitor.page.reload()
    expect(visitor.page.locator("details.tool-menu > summary")).to_have_text("Tools 2")


def test_tools_close_when_the_message_is_sent(visitor: Visitor) -> None:
    visitor.page.locator("details.tool-menu > summary").click()
    panel = visitor.page.locator("details.tool-menu .panel")
    expect(panel).to_be_visible()
    visitor.send_and_wait("greetings", "Hello there!")
    expect(panel).to_be_hidden()


def test_hint_of_the_keys_is_never_cut(visitor: Visitor) -> None:
    page = visitor.page
    for width in range(660, 1500, 40):
        page.set_viewport_size({"width": width, "height": 800})
        # Each part is in the line as a whole, or in a line that is not shown.
        whole = page.locator("#keys").evaluate(
            """hint => [...hint.children].every((part) => {
              const [box, line] = [part.getBoundingClientRect(), hint.getBoundingClientRect()];
              return box.top >= line.bottom - 1
                || (box.left >= line.left - 1 && box.right <= line.right + 1 && box.bottom <= line.bottom + 1);
            })"""
        )
        assert whole, width
    assert page.locator("#keys").inner_text().replace("\n", " ").startswith("Enter to send")


def test_enter_during_an_answer_says_that_the_message_waits(visitor: Visitor) -> None:
    notice = visitor.page.locator("form.composer .notice")
    with held(visitor.server):
        visitor.send("slowly")
        expect(visitor.last).to_contain_text("word5")
        visitor.field.fill("greetings")
        visitor.field.press("Enter")
        expect(notice).to_contain_text("Wait for the answer, or stop it.")
        expect(visitor.field).to_have_value("greetings")
    visitor.wait_for_end()
    expect(notice).to_be_empty()
    expect(visitor.answers).to_have_count(1)
    visitor.field.press("Enter")
    expect(visitor.answers).to_have_count(2)
    visitor.wait_for_end()
