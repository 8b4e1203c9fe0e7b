"""Conversations in a real browser: send, stream, stop, reload, branch, search."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Request, Route, expect

from tests.support import plain_http
from tests.support.web.chat_visitor import SLOWLY, Visitor, held

pytestmark = pytest.mark.browser
# Follows a response whose first connection fails, and whose second one stays silent. The title has the numbers of `onRetry`.
SILENT_REPLAY = """async () => {
  const { follow } = await import("/static/web/chat/follow.js");
  const retries = [];
  const replay = async () => {
    if (retries.length === 0) throw new TypeError("lost");
    return new ReadableStream({});
  };
  const onRetry = (number) => {
    retries.push(number);
    document.title = retries.join(", ");
  };
  follow({ replay }, { id: "resp_1" }, { signal: new AbortController().signal, onRetry }).next();
}"""


def test_an_answer_comes_with_its_reasoning_folded_and_a_link_to_its_events(visitor: Visitor) -> None:
    visitor.send_and_wait("greetings", "Hello there!")
    expect(visitor.page.locator("article.person")).to_contain_text("greetings")
    expect(visitor.field).to_be_focused()
    expect(visitor.page.locator("#chat [role=status]")).to_have_text("Hello there!")
    reasoning = visitor.last.locator("details.reasoning")
    expect(reasoning).not_to_have_attribute("open", "")
    expect(reasoning.locator("summary")).to_contain_text("Thought for")
    reasoning.locator("summary").click()
    expect(reasoning).to_contain_text("They greet me")
    uid = visitor.uid
    made = visitor.fetched(uid)
    assert (made["status"], made["background"], made["store"]) == ("completed", True, True)
    visitor.last.get_by_role("link", name="Events").click()
    expect(visitor.page.get_by_role("main")).to_contain_text("response.created")
    assert visitor.page.url == f"{visitor.server.url}/responses/{uid}/events"


def test_markdown_is_shown_when_done_and_nothing_of_it_runs(visitor: Visitor) -> None:
    visitor.send_and_wait("markdown", "A title")
    message = visitor.last.locator(".message")
    expect(message.get_by_role("heading", name="A title")).to_be_visible()
    expect(message.locator("strong")).to_have_text("bold")
    expect(message.locator("li")).to_have_count(2)
    expect(message.locator("td")).to_have_text(["1", "2"])
    expect(message.locator("pre code")).to_have_text('print("<b>hi</b>")')
    expect(message.locator("a")).to_have_attribute("href", "https://example.org/x")
    expect(message).to_contain_text("[a trap](javascript:alert(1))")
    expect(message).to_contain_text("<script>")
    expect(message.locator("script, img, b")).to_have_count(0)
    assert "owned" not in visitor.page.title()


def test_odd_and_huge_output_breaks_nothing(visitor: Visitor) -> None:
    visitor.choose("weather", run_automatically=False)
    visitor.send_and_wait("oddly", "⟨U+001B⟩[31mred")
    assert visitor.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    visitor.send("hugely")
    card = visitor.page.get_by_role("article", name="Call to get_weather")
    expect(card.get_by_text("more characters")).to_be_visible()
    expect(visitor.page.get_by_label("Result of get_weather")).to_be_focused()
    assert visitor.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_stop_ends_it_at_the_server_too(visitor: Visitor) -> None:
    with held(visitor.server):
        visitor.send("endlessly")
        expect(visitor.last).to_contain_text("word2")
        visitor.page.keyboard.press("Escape")
        expect(visitor.last).to_contain_text("Stopped.")
        expect(visitor.last).to_contain_text("word2")
    assert visitor.fetched(visitor.uid)["status"] == "cancelled"
    expect(visitor.page.get_by_role("button", name="Send", exact=True)).to_be_visible()
    visitor.send_and_wait("greetings", "Hello there!")


def test_a_reload_keeps_the_stream(visitor: Visitor) -> None:
    with held(visitor.server):
        visitor.send("slowly")
        expect(visitor.last).to_contain_text("word4")
        visitor.page.reload()
        expect(visitor.page.locator("article.person")).to_contain_text("slowly")
        expect(visitor.page.get_by_role("button", name="Stop")).to_be_visible()
    visitor.wait_for_end()
    expect(visitor.last.locator(".message")).to_have_text(SLOWLY)
    visitor.page.reload()
    expect(visitor.last.locator(".message")).to_have_text(SLOWLY)


def test_a_thought_goes_on_over_a_reload_and_is_stopped_there(visitor: Visitor) -> None:
    thinking = visitor.last.locator(".reasoning .latest")
    with held(visitor.server):
        visitor.send("broodingly")
        expect(thinking).to_contain_text("word")
        visitor.page.keyboard.press("Escape")
        expect(visitor.last).to_contain_text("Stopped.")
        stopped = visitor.page.url
        visitor.last.get_by_role("button", name="Regenerate").click()
        expect(visitor.page).not_to_have_url(stopped)
        expect(thinking).to_contain_text("word")
        visitor.page.reload()
        expect(visitor.answers).to_have_count(1)
        expect(thinking).to_contain_text("word")
        visitor.page.get_by_role("button", name="Stop", exact=True).click()
        expect(visitor.last).to_contain_text("Stopped.")
    expect(visitor.last).to_contain_text("2 of 2")
    thought = visitor.fetched(visitor.uid)["output"][0]["content"][0]["text"]
    assert visitor.last.locator(".reasoning .plain").text_content() == thought


def test_a_connection_that_breaks_is_taken_up_where_it_broke(visitor: Visitor) -> None:
    requests: list[str] = []

    def cut(route: Route) -> None:
        """Give the page the beginning of the stream and then nothing more."""
        request = route.request
        with plain_http.stream("POST", request.url, content=request.post_data, headers=request.headers, timeout=180) as answer:
            blocks = ""
            for part in answer.iter_text():
                blocks += part
                # No word is looked for: one delta has "word", the next its number, and the end comes in one piece with the whole text.
                if blocks.count("event: response.output_text.delta") >= 3:
                    break
        whole = blocks[: blocks.rindex("\n\n") + 2]
        route.fulfill(status=200, content_type="text/event-stream", body=whole + "event: response.output_te")

    with held(visitor.server) as release:
        visitor.page.route(re.compile(r"/v1/responses$"), cut)

        def note(request: Request) -> None:
            if "starting_after" in request.url:
                requests.append(request.url)
                release()

        visitor.page.on("request", note)
        visitor.send("slowly")
        visitor.wait_for_end()
    expect(visitor.last.locator(".message")).to_have_text(SLOWLY)
    assert [re.search(r"starting_after=\d+", url) is not None for url in requests] == [True]


def test_a_connection_counts_as_restored_before_the_next_event(visitor: Visitor) -> None:
    page = visitor.page
    page.evaluate(SILENT_REPLAY)
    expect(page).to_have_title("1, 0")


def test_errors_are_shown_and_can_be_retried_in_one_way(visitor: Visitor) -> None:
    visitor.send("breakage")
    alert = visitor.last.get_by_role("alert")
    expect(alert).to_contain_text("Error: ")
    expect(alert).to_contain_text("out of sorts")
    visitor.wait_for_end()
    expect(visitor.last.get_by_role("button", name="Try again")).to_have_count(1)
    expect(visitor.last.get_by_role("button", name="Regenerate")).to_have_count(0)
    visitor.last.get_by_role("button", name="Try again").click()
    expect(visitor.last).to_contain_text("2 of 2")
    expect(alert).to_contain_text("out of sorts")


def test_a_second_turn_continues_the_first(visitor: Visitor) -> None:
    visitor.send_and_wait("greetings", "Hello there!")
    first = visitor.uid
    visitor.send_and_wait("twice", "answer.")
    expect(visitor.answers).to_have_count(2)
    assert visitor.fetched(visitor.uid)["previous_response_id"] == first
    visitor.page.goto(f"{visitor.server.url}/chat/{first}")
    expect(visitor.last).to_contain_text("Hello there!")
    expect(visitor.answers).to_have_count(1)


def test_regenerating_branches_and_the_branches_can_be_gone_through(visitor: Visitor) -> None:
    visitor.send_and_wait("greetings", "Hello there!")
    visitor.send_and_wait("twice", "answer.")
    first = visitor.last.locator(".message").text_content() or ""
    visitor.last.get_by_role("button", name="Regenerate").click()
    expect(visitor.last).to_contain_text("2 of 2")
    visitor.wait_for_end()
    second = visitor.last.locator(".message").text_content() or ""
    assert first != second
    visitor.send_and_wait("twice", "answer.")
    expect(visitor.answers).to_have_count(3)

    branches = visitor.answers.nth(1).get_by_role("group", name="Branches")
    branches.get_by_role("button", name="Previous branch").click()
    expect(visitor.answers).to_have_count(2)
    expect(visitor.last).to_contain_text(first)
    # Back to the other one, and to what followed it.
    branches.get_by_role("button", name="Next branch").click()
    expect(visitor.answers).to_have_count(3)
    expect(visitor.answers.nth(1)).to_contain_text(second)
    visitor.page.reload()
    expect(visitor.answers.nth(1)).to_contain_text("2 of 2")


def test_an_edited_message_is_a_branch_also_where_it_was_the_first(visitor: Visitor) -> None:
    visitor.send_and_wait("twice", "answer.")
    first = visitor.uid
    visitor.page.get_by_role("button", name="Edit message").click()
    editor = visitor.page.get_by_label("Edited message")
    expect(editor).to_have_value("twice")
    expect(editor).to_be_focused()
    # A text that is written from the right begins there.
    editor.fill("تكلم معي")
    expect(editor).to_have_css("direction", "rtl")
    editor.press("Escape")
    expect(editor).to_have_count(0)
    visitor.page.get_by_role("button", name="Edit message").click()
    editor.fill("warm greetings")
    editor.press("Enter")
    expect(visitor.last).to_contain_text("Hello again!")
    expect(visitor.last).to_contain_text("2 of 2")
    expect(visitor.page.locator("article.person")).to_contain_text("warm greetings")
    made = visitor.fetched(visitor.uid)
    assert (made["previous_response_id"], made["metadata"]) == (None, {"branch_of": first})
    visitor.page.reload()
    visitor.page.get_by_role("button", name="Previous branch").click()
    expect(visitor.page).to_have_url(re.compile(first))
    expect(visitor.last).to_contain_text("answer.")
    expect(visitor.page.get_by_role("button", name="Next branch")).to_be_focused()
    # A reload at the older branch tells that there is a newer one.
    visitor.page.reload()
    expect(visitor.last).to_contain_text("answer.")
    expect(visitor.page.locator(".newer")).to_be_visible()
    visitor.page.get_by_role("button", name="Show newest").click()
    expect(visitor.last).to_contain_text("Hello again!")
    expect(visitor.page.locator(".newer")).to_be_hidden()
    visitor.page.get_by_role("button", name="Previous branch").click()
    expect(visitor.last).to_contain_text("answer.")
    # The list has one link for the conversation, to the newest branch.
    expect(visitor.page.locator(".threads [aria-current=page]")).to_have_count(1)


def test_conversations_are_listed_under_their_first_words_and_found(visitor: Visitor) -> None:
    visitor.send_and_wait("<b>xylophones</b> twice", "answer.")
    first = visitor.uid
    visitor.send_and_wait("greetings", "Hello there!")
    threads = visitor.page.get_by_role("navigation", name="Conversations")
    entry = threads.get_by_role("link", name="<b>xylophones</b> twice", exact=True)
    expect(entry).to_have_count(1)
    expect(entry).to_have_attribute("aria-current", "page")
    assert first not in (entry.get_attribute("href") or "")

    threads.get_by_role("link", name="New conversation").click()
    expect(visitor.answers).to_have_count(0)
    search = threads.get_by_role("searchbox")
    search.fill("XYLOPHONES")
    search.press("Enter")
    expect(threads.locator(".threads li")).to_have_count(1)
    entry.click()
    expect(visitor.answers).to_have_count(2)
    visitor.page.go_back()
    search.fill("nobody said this")
    search.press("Enter")
    expect(threads).to_contain_text("No results")


def test_a_secret_that_has_grown_old_is_replaced(visitor: Visitor) -> None:
    requests: list[str] = []

    def old(route: Route) -> None:
        """Reject the first API key, as the server does with an expired one."""
        requests.append(route.request.headers["authorization"])
        if len(requests) > 1:
            route.continue_()
        else:
            route.fulfill(status=401, json={"error": {"message": "Incorrect API key provided."}})

    visitor.page.route(re.compile(r"/v1/responses$"), old)
    visitor.send_and_wait("greetings", "Hello there!")
    assert len(requests) == 2
    assert all(secret.startswith("Bearer sk-web-") for secret in requests)
    assert [trouble.partition(" ")[0] for trouble in visitor.errors.seen] == ["401", "Failed"]
    visitor.errors.seen.clear()


def test_the_end_of_an_answer_is_in_view_unless_the_person_has_scrolled_up(visitor: Visitor) -> None:
    page = visitor.page
    page.set_viewport_size({"width": 800, "height": 320})
    at_end = "() => document.documentElement.scrollHeight - innerHeight - scrollY < 2"
    for word in ("markdown", "mathematically"):
        visitor.send_and_wait(word, "print(")
        page.wait_for_function(at_end)
    with held(visitor.server):
        visitor.send("gradually")
        expect(visitor.last).to_contain_text("word9")
        page.evaluate(
            "() => new Promise((done) => (addEventListener('scroll', done), scrollTo({ top: 0, behavior: 'instant' })))"
        )
    visitor.wait_for_end()
    expect(visitor.last.get_by_role("link", name="Events")).to_be_attached()
    assert page.evaluate("scrollY") == 0


def test_a_message_that_did_not_arrive_is_sent_again_by_the_person_or_in_the_field_after_a_reload(visitor: Visitor) -> None:
    for ends_well in (False, True):
        visitor.page.route(re.compile(r"/v1/responses$"), lambda route: route.abort())
        visitor.send("greetings")
        expect(visitor.last.get_by_role("alert")).to_have_text("Can’t reach the server.")
        expect(visitor.field).to_have_value("")
        visitor.page.unroute_all()
        if ends_well:
            visitor.last.get_by_role("button", name="Try again").click()
            expect(visitor.last).to_contain_text("Hello there!")
            expect(visitor.last.get_by_role("alert")).to_have_count(0)
        visitor.page.reload()
        expect(visitor.field).to_have_value("" if ends_well else "greetings")
        assert len(visitor.errors.seen) == 1
        visitor.errors.seen.clear()


def test_first_message_stays_while_the_server_is_away(visitor: Visitor) -> None:
    page = visitor.page
    page.wait_for_load_state("networkidle")
    # Not even the modules that send can be fetched.
    page.context.set_offline(True)
    visitor.press_enter("greetings")
    notice = page.get_by_text("Can’t reach the server. Try again.")
    expect(notice).to_be_visible()
    expect(visitor.field).to_have_value("greetings")
    page.context.set_offline(False)
    visitor.field.press("Enter")
    expect(visitor.last).to_contain_text("Hello there!")
    expect(notice).to_be_hidden()
    expect(visitor.answers).to_have_count(1)
    # Another module.
    visitor.wait_for_end()
    page.context.set_offline(True)
    page.get_by_role("button", name="Edit message").click()
    expect(notice).to_be_visible()
    page.context.set_offline(False)
    page.get_by_role("button", name="Edit message").click()
    expect(page.get_by_label("Edited message")).to_be_focused()
    visitor.errors.seen.clear()


def refuse(visitor: Visitor, status: int, times: int = 1000, **headers: str) -> list[str]:
    """Refuse the next messages with `headers`. Return the list to which the idempotency key of each message is added."""
    keys: list[str] = []

    def answer(route: Route) -> None:
        keys.append(route.request.headers["idempotency-key"])
        if len(keys) > times:
            return route.fallback()
        error = {"message": "The engine does not answer.", "type": "server_error", "param": None, "code": "server_error"}
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return route.fulfill(status=status, json={"error": error}, headers=names)

    visitor.page.route(re.compile(r"/v1/responses$"), answer)
    return keys


def test_message_that_is_refused_for_now_is_sent_again_by_itself(visitor: Visitor) -> None:
    keys = refuse(visitor, 503, times=2, retry_after="1")
    visitor.send("greetings")
    expect(visitor.last.get_by_role("alert")).to_contain_text("The engine does not answer.")
    expect(visitor.last).to_contain_text("Your message is sent again in 1 s.")
    expect(visitor.last).to_contain_text("Hello there!")
    expect(visitor.last.get_by_role("alert")).to_have_count(0)
    expect(visitor.answers).to_have_count(1)
    assert (len(keys), len(set(keys))) == (3, 1)
    visitor.errors.seen.clear()


def test_message_that_waits_is_sent_at_once_or_not_at_all(visitor: Visitor) -> None:
    visitor.send_and_wait("greetings", "Hello there!")
    first = visitor.uid
    refuse(visitor, 429, times=2, retry_after="100")
    visitor.send("twice")
    expect(visitor.last).to_contain_text(re.compile(r"sent again in \d+ s"))
    visitor.last.get_by_role("button", name="Send now").click()
    expect(visitor.last).to_contain_text("sent again in 100 s")
    visitor.page.get_by_role("button", name="Stop").click()
    expect(visitor.last.get_by_role("button", name="Try again")).to_be_visible()
    expect(visitor.last).not_to_contain_text("sent again")
    # The refused message is not part of the conversation, which goes on.
    visitor.send_and_wait("snowfall", "So it snows.")
    assert visitor.fetched(visitor.uid)["previous_response_id"] == first
    expect(visitor.page.get_by_role("button", name="Try again")).to_have_count(0)
    visitor.errors.seen.clear()


def test_message_that_would_be_refused_again_is_not_sent_by_itself(visitor: Visitor) -> None:
    keys = refuse(visitor, 429, retry_after="1", x_should_retry="false")
    visitor.send("greetings")
    expect(visitor.last.get_by_role("button", name="Try again")).to_be_visible()
    expect(visitor.last.get_by_role("alert")).to_have_text("The engine does not answer.")
    assert len(keys) == 1
    visitor.errors.seen.clear()


def test_an_answer_or_conversation_that_was_deleted_elsewhere_is_named(visitor: Visitor) -> None:
    server, alert = visitor.server, visitor.last.get_by_role("alert")
    headers = {"Authorization": f"Bearer {server.key}"}
    visitor.send_and_wait("greetings", "Hello there!")
    plain_http.delete(f"{server.url}/v1/responses/{visitor.uid}", headers=headers, timeout=180)
    visitor.send("snowfall")
    expect(alert).to_have_text("The answer above was deleted. Edit an earlier message, or start a new conversation.")
    together = plain_http.post(f"{server.url}/v1/conversations", json={}, headers=headers, timeout=180).json()["id"]
    uid = server.ask(model="chat", input="greetings", conversation=together).json()["id"]
    visitor.page.goto(f"{server.url}/chat/{uid}")
    expect(visitor.last).to_contain_text("Hello there!")
    plain_http.delete(f"{server.url}/v1/conversations/{together}", headers=headers, timeout=180)
    visitor.send("snowfall")
    expect(alert).to_have_text("This conversation was deleted. Start a new one.")
    assert [seen[:3] for seen in visitor.errors.seen if seen[:3].isdigit()] == ["400", "404"]
    visitor.errors.seen.clear()


def test_a_conversation_of_the_api_goes_on_as_one_until_it_is_left_by_a_branch(visitor: Visitor) -> None:
    server = visitor.server
    headers = {"Authorization": f"Bearer {server.key}"}
    together = plain_http.post(f"{server.url}/v1/conversations", json={}, headers=headers, timeout=180).json()["id"]
    uids = [server.ask(model="chat", input=text, conversation=together).json()["id"] for text in ("greetings", "snowfall")]
    visitor.page.goto(f"{server.url}/chat/{uids[1]}")
    expect(visitor.answers).to_have_count(2)
    expect(visitor.last).to_contain_text("So it snows.")
    visitor.send_and_wait("markdown", "A title")
    assert visitor.fetched(visitor.uid)["conversation"] == {"id": together}
    visitor.last.get_by_role("button", name="Regenerate").click()
    expect(visitor.last).to_contain_text("2 of 2")
    visitor.wait_for_end()
    branch = visitor.fetched(visitor.uid)
    assert (branch.get("conversation"), branch["previous_response_id"]) == (None, uids[1])
    visitor.page.reload()
    expect(visitor.answers).to_have_count(3)
    visitor.send_and_wait("snowfall", "So it snows.")
    assert visitor.fetched(visitor.uid)["previous_response_id"] == branch["id"]
