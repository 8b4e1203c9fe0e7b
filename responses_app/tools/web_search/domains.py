"""Domain filter of web search: allowed and blocked domains, with their subdomains, and domains with a path."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from posixpath import normpath
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True, slots=True)
class DomainFilter:
    """Domains of results and pages. Without `allowed`, every domain that is not `blocked` is allowed.

    An entry with a path, such as `example.com/blog`, stands for the pages at the path and below. A `*` in the path stands for any
    characters.
    """

    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()

    @classmethod
    def of(cls, allowed: Sequence[str] | None, blocked: Sequence[str] | None = None) -> DomainFilter:
        """Create a filter from the lists of a request."""
        return cls(tuple(map(normalize_domain, allowed or ())), tuple(map(normalize_domain, blocked or ())))

    @property
    def allowed_hosts(self) -> tuple[str, ...]:
        """Host names of the allowed entries, for search services that filter by host alone."""
        return tuple(dict.fromkeys(entry.partition("/")[0] for entry in self.allowed))

    @property
    def blocked_hosts(self) -> tuple[str, ...]:
        """Blocked host names without a path. The other pages of a host whose entry has a path are allowed."""
        return tuple(entry for entry in self.blocked if "/" not in entry)

    def allows(self, url: str) -> bool:
        """Return whether results and pages may come from `url`."""
        if not host_of(url) or any(_contains(entry, url) for entry in self.blocked):
            return False
        return not self.allowed or any(_contains(entry, url) for entry in self.allowed)


def normalize_domain(domain: str) -> str:
    """Return `domain` with the host in lower case and without dots at the ends; a path is kept without a slash at its end."""
    host, _, path = domain.strip().partition("/")
    host, path = _ascii(host.lower().strip(".")), path.rstrip("/")
    return f"{host}/{path}" if path else host


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


def _contains(entry: str, url: str) -> bool:
    """Return True if the page at `url` belongs to the entry of a filter."""
    domain, _, pattern = entry.partition("/")
    if not is_in_domain(host_of(url), domain):
        return False
    # Escapes and dot segments would be another spelling of a blocked path.
    path = normpath("/" + unquote(urlsplit(url).path).lstrip("/"))
    parts = map(re.escape, unquote(f"/{pattern}").split("*"))
    return not pattern or re.fullmatch(f"{'.*'.join(parts)}(/.*)?", path, re.DOTALL) is not None


def _ascii(host: str) -> str:
    """Return an internationalised name in the form of the network; the name itself if there is no such form."""
    try:
        return host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        return host
