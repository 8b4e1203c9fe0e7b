"""Rendering of responses in the chat: streamed Markdown, times, responses without text, failures."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.support.web.chat_visitor import Visitor, held

SHIFT = """() => new Promise((done) => new PerformanceObserver((list) => done(list.getEntries().reduce((sum, one) => sum + one.value, 0)))
  .observe({ type: "layout-shift", buffered: true }) || setTimeout(() => done(0), 300))"""
# Counts the typeset formulas when the first turns appear.
FIRST_TURNS = """new MutationObserver((_, observer) => {
  if (!document.querySelector(".turns > .turn")) return;
  window.mathOfFirstTurns = document.querySelectorAll(".turns .math math").length;
  observer.disconnect();
}).observe(document, { childList: true, subtree: true })"""
pytestmark = pytest.mark.browser
# Characters that are handed to the renderer while a text is streamed in pieces of 20.
COST = """async (text) => {
  const { MarkdownStream } = await import("/static/web/markdown/stream.js");
  const stream = new MarkdownStream();
  let cost = 0;
  const render = stream.render;
  stream.render = function () { cost += this.open.length; render.call(this); };
  for (let at = 0; at < text.length; at += 20) (stream.append(text.slice(at, at + 20)), stream.draw());
  stream.finish();
  return cost;
}"""


def test_markdown_is_rendered_while_it_is_streamed(visitor: Visitor) -> None:
    with held(visitor.server):
        visitor.send("gradually")
        message = visitor.last.locator(".message")
        expect(message.locator("strong")).to_have_text("bold")
        expect(message.locator("pre code")).to_have_text("print(1)")
        expect(message).to_contain_text("word1")
        expect(visitor.last).to_have_attribute("aria-busy", "true")
        message.locator("strong").evaluate("one => (one.isFirst = true)")
    visitor.wait_for_end()
    # What was there stays the same element: nothing is laid out anew at the end.
    assert message.locator("strong").evaluate("one => one.isFirst")
    expect(message).to_contain_text("word59")


def test_the_cost_of_streaming_is_linear(visitor: Visitor, subtests: pytest.Subtests) -> None:
    for text in ("Some **words** here.\n\n" * 1000, "- a point\n" * 2000, "```\n" + "x = 1\n" * 3000):
        with subtests.test(text=text[:20]):
            half, whole = (visitor.page.evaluate(COST, part) for part in (text[: len(text) // 2], text))
            # Twice the text costs about twice as much; to render all of it for each delta would cost four times.
            assert whole < 3 * half
            assert whole < 150 * len(text)


def test_the_time_of_reasoning_is_that_of_the_log(visitor: Visitor) -> None:
    with held(visitor.server):
        visitor.send("pensively")
        label = visitor.last.locator(".reasoning .label")
        # The page is opened again when the reasoning is over: its own clock has not seen it.
        expect(visitor.last).to_contain_text("word2")
        visitor.page.reload()
        expect(label).to_contain_text("Thought for")
    visitor.wait_for_end()
    thought = label.inner_text()
    assert float(thought.split()[2]) >= 0.5
    visitor.page.reload()
    visitor.wait_for_end()
    expect(label).to_have_text(thought)


def test_an_answer_has_its_tokens_and_its_speed_below(visitor: Visitor) -> None:
    visitor.send_and_wait("greetings", "Hello there!")
    pattern = re.compile(r"^\d+ in( \(\d+ cached\))? · \d+ out \(\d+ reasoning\) · \d+\.\d+ s TTFT · \d+(\.\d)? tok/s$")
    figures = visitor.last.locator(".figures")
    expect(figures).to_have_text(pattern)
    figure_text = figures.inner_text()
    visitor.page.reload()
    expect(figures).to_have_text(figure_text)


def test_an_answer_without_text_has_a_notice(visitor: Visitor) -> None:
    visitor.send_and_wait("wordlessly", "The model returned no text.")
    visitor.page.reload()
    expect(visitor.last).to_contain_text("The model returned no text.")


def test_opened_thread_with_code_and_math_moves_nothing(visitor: Visitor) -> None:
    for _ in range(3):
        visitor.send_and_wait("mathematically", "word59")
    page = visitor.page
    page.add_init_script(FIRST_TURNS)
    page.goto(page.url)
    expect(page.locator(".math math").last).to_be_visible()
    # The turns came with their math.
    assert page.evaluate("window.mathOfFirstTurns") == 6
    expect(page.locator("pre.enhanced span[class^=hljs]").last).to_be_visible()
    expect(visitor.last).to_have_attribute("aria-busy", "false")
    assert page.evaluate(SHIFT) < 0.01


def test_a_shared_conversation_has_lines_tables_and_colours(visitor: Visitor) -> None:
    page = visitor.page
    visitor.send_and_wait("In\nmarkdown", "A title")
    page.get_by_role("link", name="Options of In").click()
    page.get_by_role("button", name="Make a link").click()
    page.goto(page.locator("#shared").inner_text().strip())
    assert page.locator("div.plain").inner_text() == "In\nmarkdown"
    assert page.locator(".markdown td").first.evaluate("cell => getComputedStyle(cell).borderTopStyle") == "solid"
    expect(page.locator(".hljs-built_in")).to_have_text("print")
    # Wide tables and long lines of code scroll in their own place.
    page.set_viewport_size({"width": 160, "height": 600})
    page.locator(".markdown pre code").evaluate("code => (code.textContent += 'x'.repeat(500))")
    assert page.locator("article").evaluate_all("all => all.every((one) => one.scrollWidth <= one.clientWidth)")


def test_a_wide_table_scrolls_on_a_phone_and_a_narrow_one_fits(visitor: Visitor) -> None:
    page = visitor.page
    page.set_viewport_size({"width": 390, "height": 844})
    visitor.send_and_wait("markdown", "A title")
    box = visitor.last.locator(".wide")
    for cell, columns, scrolls in (
        ("plain words in a cell of a table " * 3, 5, True),
        ("12.5", 5, False),
        ("plain words " * 9, 2, False),
    ):
        box.locator("table").evaluate(
            "(table, [cell, count]) => table.innerHTML = `<tr>${`<th>${cell}</th>`.repeat(count)}</tr>`", [cell, columns]
        )
        assert box.evaluate("box => box.scrollWidth > box.clientWidth") is scrolls
        assert box.evaluate("box => box.offsetHeight") < 250
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_deep_lists_and_quotations_fit_on_a_phone(visitor: Visitor) -> None:
    page = visitor.page
    page.set_viewport_size({"width": 390, "height": 844})
    visitor.send_and_wait("markdown", "A title")
    for opening, closing in (("<ul><li>word", "</li></ul>"), ("<blockquote><p>word</p>", "</blockquote>")):
        nested = opening * 40 + closing * 40
        visitor.last.locator(".markdown").first.evaluate("(box, html) => (box.innerHTML = html)", nested)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), opening


def test_printed_chat_has_the_conversation_alone(visitor: Visitor) -> None:
    page = visitor.page
    visitor.send_and_wait("markdown", "A title")
    page.emulate_media(media="print")
    for part in (".top", "#threads", "form.composer", ".turn footer"):
        expect(page.locator(part).first).to_be_hidden()
    expect(visitor.last.get_by_role("heading", name="A title")).to_be_visible()
    assert page.locator("main").evaluate("main => getComputedStyle(main).display") == "block"


def test_field_does_not_hide_the_answer_at_a_large_zoom(visitor: Visitor) -> None:
    # A window of 1280 pixels at 400 %.
    visitor.page.set_viewport_size({"width": 320, "height": 256})
    visitor.send_and_wait("markdown", "A title")
    expect(visitor.field).to_be_in_viewport()
    visitor.page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")
    expect(visitor.field).not_to_be_in_viewport()


def test_an_ended_answer_has_no_cursor_where_its_final_form_cannot_be_loaded(visitor: Visitor) -> None:
    visitor.page.route("**/fragment*", lambda route: route.abort())
    visitor.send_and_wait("markdown", "A title")
    expect(visitor.last.get_by_role("heading", name="A title")).to_be_visible()
    expect(visitor.last.locator(".streaming")).to_have_count(0)
    # The browser reports the requests that failed.
    visitor.errors.seen.clear()


def test_an_item_whose_final_form_failed_is_loaded_again_by_itself_and_then_by_a_button(visitor: Visitor) -> None:
    page, alerts = visitor.page, visitor.last.get_by_role("alert")
    page.route("**/fragment*", lambda route: route.fulfill(status=503), times=2)
    visitor.send_and_wait("greetings", "Hello there!")
    expect(visitor.last).to_contain_text("Thought for")
    expect(alerts).to_have_count(0)

    # The form of a call waits for the card.
    page.route("**/fragment*", lambda route: route.abort())
    visitor.choose("weather", run_automatically=False)
    visitor.send("weatherwise")
    expect(alerts).to_contain_text("Couldn’t load this part of the answer.")
    expect(page.get_by_label("Result of get_weather")).to_have_count(0)
    page.unroute("**/fragment*")
    alerts.get_by_role("button", name="Try again").press("Enter")
    expect(page.get_by_label("Result of get_weather")).to_be_focused()
    expect(alerts).to_have_count(0)
    visitor.errors.seen.clear()


def test_the_page_of_a_running_response_names_a_part_that_could_not_be_loaded(visitor: Visitor) -> None:
    page = visitor.page
    with held(visitor.server):
        visitor.send("pensively")
        expect(visitor.last).to_contain_text("word4")
        page.route("**/fragment*", lambda route: route.abort())
        page.goto(f"{visitor.server.url}/responses/{visitor.uid}")
        alert, label = page.locator("#answered").get_by_role("alert"), page.locator("#answered .reasoning .label")
        expect(alert).to_be_visible()
        expect(label).to_have_text("Thought")
        page.unroute("**/fragment*")
        alert.get_by_role("button", name="Try again").press("Enter")
        expect(label).to_contain_text("Thought for")
        expect(page.locator("#answered .reasoning")).to_be_focused()
        expect(alert).to_have_count(0)
    expect(page.locator(".status").first).to_have_text("Completed")
    visitor.errors.seen.clear()


def test_code_is_as_large_in_a_block_as_in_a_line_and_an_answer_is_copied_as_written(visitor: Visitor) -> None:
    visitor.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visitor.send_and_wait("markdown", "A title")
    size = "one => parseFloat(getComputedStyle(one).fontSize)"
    inline = visitor.last.locator("p code").first.evaluate(size)
    assert visitor.last.locator("pre code").evaluate(size) == inline
    visitor.last.get_by_role("button", name="Copy answer").click()
    expect(visitor.last.get_by_role("button", name="Copied")).to_be_visible()
    assert "Some **bold**, `code`" in visitor.page.evaluate("navigator.clipboard.readText()")


def test_output_problem_is_a_notice_beside_the_answer(visitor: Visitor) -> None:
    visitor.send_and_wait("brokenly", "Well.")
    notice = visitor.last.locator("details.problems")
    expect(notice.locator("summary")).to_have_text("1 output problem")
    expect(notice.locator("li")).not_to_be_visible()
    notice.locator("summary").click()
    expect(notice.locator("li")).to_have_text("A message has an unknown channel. The message is part of the answer. musings")
    visitor.page.reload()
    expect(visitor.last.locator("details.problems summary")).to_have_text("1 output problem")
    visitor.last.get_by_role("link", name="Events").click()
    expect(visitor.page.get_by_role("region", name="Output problems")).to_contain_text("unknown_channel")
