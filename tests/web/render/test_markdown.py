"""Markdown: the server and the browser give the HTML of the same cases, in markdown_cases.json."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import TypedDict

import pytest
from playwright.sync_api import expect

from responses_app.web.render.markdown import markdown
from tests.support.web.chat_visitor import Visitor


class MarkdownCase(TypedDict):
    """Markdown and the HTML of both ends."""

    name: str
    markdown: str
    html: str


CASES: list[MarkdownCase] = json.loads((Path(__file__).parent / "markdown_cases.json").read_text())
BROWSER = """async (texts) => {
  const { html } = await import("/static/web/markdown/markdown.js");
  return texts.map(html);
}"""
# The HTML of each text that came in pieces of `size` characters, and of the same text as a whole. Enhancements come later.
STREAMED = """async ([texts, size]) => {
  const { MarkdownStream } = await import("/static/web/markdown/stream.js");
  const { markdown } = await import("/static/web/markdown/markdown.js");
  const { enhance } = await import("/static/web/markdown/enhance.js");
  // Drawn after each piece, and in no frame later.
  window.requestAnimationFrame = () => 0;
  const streams = texts.map((text) => {
    const stream = new MarkdownStream();
    for (let at = 0; at < text.length; at += size) (stream.append(text.slice(at, at + size)), stream.draw());
    stream.finish();
    return stream.element;
  });
  const wholes = texts.map((text) => markdown(text));
  wholes.forEach(enhance);
  await Promise.all([import("/static/web/vendor/temml.js"), import("/static/web/vendor/highlight.js")]);
  await new Promise((resolve) => setTimeout(resolve));
  return streams.map((element, index) => [element.innerHTML, wholes[index].innerHTML]);
}"""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_server_renders_the_cases(case: MarkdownCase) -> None:
    assert markdown(case["markdown"]) == case["html"]


@pytest.mark.browser
def test_the_browser_renders_the_cases(visitor: Visitor, subtests: pytest.Subtests) -> None:
    rendered = visitor.page.evaluate(BROWSER, [case["markdown"] for case in CASES])
    for case, html in zip(CASES, rendered, strict=True):
        with subtests.test(case=case["name"]):
            assert html == case["html"]


@pytest.mark.browser
@pytest.mark.parametrize("size", [1, 7])
def test_streamed_markdown_ends_as_the_whole_text_does(visitor: Visitor, subtests: pytest.Subtests, size: int) -> None:
    texts = [f"{first['markdown']}\n\n{second['markdown']}" for first, second in product(CASES[:6], CASES)]
    pairs = visitor.page.evaluate(STREAMED, [texts + [case["markdown"] for case in CASES], size])
    assert len(pairs) > len(texts)
    for at, (streamed, whole) in enumerate(pairs):
        with subtests.test(at=at):
            assert streamed == whole


RICH = "Energy:\n\n$$\nE = mc^2\n$$\n\n```python\nprint(6 * 7)\n```\n"


@pytest.mark.browser
@pytest.mark.parametrize("place", ["chat/{}", "responses/{}", "responses#{}"])
def test_code_has_colours_and_copy_and_math_is_typeset(visitor: Visitor, place: str) -> None:
    page = visitor.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    messages = [{"role": "assistant", "content": RICH}, {"role": "user", "content": "greetings"}]
    uid = visitor.server.ask(model="chat", input=messages).json()["id"]
    page.goto(f"{visitor.server.url}/{place.format(uid)}")
    block = page.locator(".markdown pre")
    expect(block.locator(".hljs-built_in")).to_have_text("print")
    assert block.evaluate("one => getComputedStyle(one, '::before').content") == '"python"'
    block.get_by_role("button", name="Copy code").click()
    page.wait_for_function("navigator.clipboard.readText().then((text) => text === 'print(6 * 7)\\n')")
    expect(page.locator(".math.display math msup")).to_have_count(1)
