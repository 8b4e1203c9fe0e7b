"""Text of pages: titles, lines, links, charsets and hostile pages."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from responses_app.tools.web_search import reader
from responses_app.tools.web_search.pages import text_job
from responses_app.tools.web_search.pages.page import MAX_MATCHES, Page, PageFailed
from responses_app.workers.limits import Limits
from responses_app.workers.pool import Pool
from tests.support.extraction import documents

URL = "https://docs.example.com/guide/start"
HTML = """<!doctype html><html><head><title>Tea
 &amp; more</title><style>p {}</style></head><body><nav><a href="/">Home</a> Menu</nav>
<h1>Tea</h1><p>Green   tea is <b>steamed</b>, see <a href="../black">black tea</a>.</p>
<ul><li>one</li><li><a href="https://other.example/x_(y)">two</a></li></ul>
<table><tr><td>a</td><td>b</td></tr></table><pre>x  =  1
y</pre><script>alert("no")</script><footer>Imprint</footer></body></html>"""


def page(source: str | bytes, media_type: str = "text/html", charset: str = "") -> Page:
    data = source.encode() if isinstance(source, str) else source
    answer = orjson.loads(text_job.handle(text_job.encode_job(URL, media_type, charset, data)))
    return Page(URL, answer["title"], answer["lines"], answer["links"])


def test_html_becomes_lines_with_links() -> None:
    text_page = page(HTML)
    assert text_page.title == "Tea & more"
    assert text_page.lines == [
        *("# Tea", "", "Green tea is steamed, see 【0†black tea】.", ""),
        *("* one", "* 【1†two†other.example】", "", "a | b", "", "x  =  1", "y"),
    ]
    assert text_page.links == ["https://docs.example.com/black", "https://other.example/x_%28y%29"]


def test_main_part_is_preferred() -> None:
    text_page = page(f"<div>Advertising</div><main><p>{'tea ' * 60}</p></main>")
    assert "Advertising" not in " ".join(text_page.lines)


@pytest.mark.parametrize(
    "source",
    [
        "<head><title>a</title><body><p>Tea</p>",
        "<form><p>Tea</p></form>",
        "<nav><a>Tea</a>",
        "</div></nav><p>Tea",
        "<p>Tea</p><!-- no end",
        "<p>Tea<",
        "<title>Tea",
    ],
)
def test_unfinished_page_has_its_text(source: str) -> None:
    text_page = page(source)
    assert "Tea" in [*text_page.lines, text_page.title, "".join(text_page.lines).rstrip("<")]


def test_markdown_has_links_and_a_title() -> None:
    text_page = page("# Tea\n\nSee [black](https://docs.example.com/black).", "text/markdown")
    assert (text_page.title, text_page.lines[-1]) == ("Tea", "See 【0†black】.")


def test_forged_marks_and_invisible_characters_are_replaced() -> None:
    assert page("<p>【1†fake】 a\u202eb\u200bc</p>").lines == ["〖1‡fake〗 abc"]


@pytest.mark.parametrize(
    ("data", "charset"),
    [
        ("é".encode("latin-1"), "latin-1"),
        (b'<meta charset="iso-8859-1">' + "é".encode("latin-1"), ""),
        ("é".encode(), ""),
        ("é".encode("utf-8-sig"), "no-such-charset"),
        ("é".encode("cp1252"), "utf-8"),
    ],
)
def test_charset_is_found(data: bytes, charset: str) -> None:
    assert page(data, charset=charset).lines == ["é"]


def test_long_lines_are_wrapped_and_long_pages_cut() -> None:
    text_page = page("tea " * 100, "text/plain")
    assert max(map(len, text_page.lines)) <= text_job.LINE_WIDTH
    assert page("a\n" * 30_000, "text/plain").lines[-1] == "[The page is cut here.]"


def test_find_returns_places_with_the_lines_behind() -> None:
    text_page = Page(URL, "Tea", ["a", "TEA", "b", "c", "d", "tea"])
    assert list(text_page.find("tea")) == [[(1, "TEA"), (2, "b"), (3, "c"), (4, "d")], [(5, "tea")]]
    assert len(list(Page(URL, "Tea", ["tea"] * 1000).find("tea"))) == MAX_MATCHES


@pytest.mark.parametrize(
    "source", ["<div>" * 100_000, "<a href='x'>" * 50_000, "[" * 500_000, "<p>" + "\n " * 500_000, "<" * 500_000]
)
@pytest.mark.slow
def test_hostile_page_ends_within_the_limits(source: str) -> None:
    assert asyncio.run(reader.read_text("project", URL, "text/html", "", source.encode())).url == URL


def test_pdf_becomes_lines() -> None:
    text_page = asyncio.run(reader.read_text("project", URL, "application/pdf", "", documents.pdf("Oslo", "Bergen")))
    assert (text_page.title, text_page.lines) == (URL, ["Oslo", "", "Bergen"])


def test_broken_pdf_names_the_reason() -> None:
    with pytest.raises(PageFailed, match="The PDF cannot be read"):
        asyncio.run(reader.read_text("project", URL, "application/pdf", "", b"%PDF-1.4 and no more"))


def test_page_that_takes_too_long_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(cpu_s=1, wall_s=0.01, memory_bytes=512 << 20)
    monkeypatch.setattr(reader, "_pool", Pool(reader._pool.target, limits, size=1))
    with pytest.raises(PageFailed, match="cannot be read"):
        asyncio.run(reader.read_text("project", URL, "text/html", "", b"<div>" * 100_000))
