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
        (["bücher.example"], [], "https://xn--bcher-kva.example", True),
        ([], ["a.example"], "https://x.a.example", False),
        ([], [], "ftp://a.example", False),
        ([], [], "a.example", False),
        ([], [], "https://[::1", False),
    ],
)
def test_domain_filter(allowed: list[str], blocked: list[str], url: str, expected: bool) -> None:
    assert DomainFilter.of(allowed, blocked).allows(url) is expected
