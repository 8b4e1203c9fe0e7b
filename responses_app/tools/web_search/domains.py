"""Domain filter of web search: allowed and blocked domains, with their subdomains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class DomainFilter:
    """Domains of results and pages. Without `allowed`, every domain that is not `blocked` is allowed."""

    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()

    @classmethod
    def of(cls, allowed: Sequence[str] | None, blocked: Sequence[str] | None = None) -> DomainFilter:
        """Create a filter from the lists of a request."""
        return cls(tuple(map(normalize_domain, allowed or ())), tuple(map(normalize_domain, blocked or ())))

    def allows(self, url: str) -> bool:
        """Return whether results and pages may come from `url`."""
        host = host_of(url)
        if not host or any(is_in_domain(host, domain) for domain in self.blocked):
            return False
        return not self.allowed or any(is_in_domain(host, domain) for domain in self.allowed)


def normalize_domain(domain: str) -> str:
    """Return `domain` in lower case, without dots at the ends."""
    return _ascii(domain.strip().lower().strip("."))


def host_of(url: str) -> str:
    """Return the host name of an http or https URL in lower case; empty for any other text."""
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.scheme in ("http", "https") else None
    except ValueError:
        return ""
    return _ascii((host or "").strip("."))


def is_in_domain(host: str, domain: str) -> bool:
    """Return True if `host` is `domain` or a subdomain."""
    return host == domain or host.endswith(f".{domain}")


def _ascii(host: str) -> str:
    """Return an internationalised name in the form of the network; the name itself if there is no such form."""
    try:
        return host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        return host
