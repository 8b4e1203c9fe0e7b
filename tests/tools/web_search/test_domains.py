"""Domain filter: subdomains, blocked domains, and texts that are no URL of a page."""

from __future__ import annotations

import pytest

from responses_app.tools.web_search.domains import DomainFilter


@pytest.mark.parametrize(
    ("allowed", "blocked", "url", "expected"),
    [
        ([], [], "https://a.example/x", True),
        (["a.example"], [], "https://a.example", True),
        (["A.Example."], [], "https://www.a.EXAMPLE.:8443/x", True),
        (["a.example"], [], "https://nota.example", False),
        (["a.example"], [], "https://a.example.evil.test", False),
        (["a.example"], [], "https://a.example@evil.test", False),
        (["a.example"], ["b.a.example"], "https://b.a.example", False),
        (["a.example/blog/"], [], "https://www.a.example/blog", True),
        (["a.example/blog"], [], "https://a.example/blog/post?x=1", True),
        (["a.example/blog"], [], "https://a.example/blogs", False),
        (["a.example/blog"], [], "https://a.example/", False),
        (["a.example/blog"], [], "https://a.example/blog/../about", False),
        (["a.example/"], [], "https://a.example/about", True),
        (["a.example/*"], [], "https://a.example/", True),
        (["a.example/*/news"], [], "https://a.example/en/news/1", True),
        (["a.example/*/news"], [], "https://a.example/en/old", False),
        (["a.example/a.b"], [], "https://a.example/axb", False),
        ([], ["a.example/private"], "https://a.example/open", True),
        ([], ["a.example/private"], "https://a.example/%70rivate/x", False),
        ([], ["a.example/private"], "https://a.example//private", False),
        ([], ["a.example/private"], "https://a.example/x/./../private", False),
        (["bücher.example"], [], "https://xn--bcher-kva.example", True),
        ([], ["a.example"], "https://x.a.example", False),
        ([], [], "ftp://a.example", False),
        ([], [], "a.example", False),
        ([], [], "https://[::1", False),
    ],
)
def test_domain_filter(allowed: list[str], blocked: list[str], url: str, expected: bool) -> None:
    assert DomainFilter.of(allowed, blocked).allows(url) is expected
