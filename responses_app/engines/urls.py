"""Engine URLs: several URLs of a model in a text, separated by commas, with the parameters behind the last URL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import parse_qsl, urlencode, urlsplit

from responses_app.engine_interface import Engine

# Schemes of which a model may have several URLs.
POOLED = ("http", "https")
_SEPARATOR = re.compile(r",(?=[a-z]+://)")


def split_urls(text: str) -> list[str]:
    """Split the URLs of a model, and give each URL the parameters of the last one. Raises ValueError."""
    *others, last = _SEPARATOR.split(text)
    base, _, query = last.partition("?")
    for url in (*others, base):
        _check_address(url)
    if misplaced := [url for url in others if "?" in url]:
        raise ValueError(f"the parameters of {location(misplaced[0])} stand behind the last URL, where they hold for all URLs")
    urls = [f"{url}?{query}" if query else url for url in (*others, base)]
    if len(urls) > 1:
        _check(urls)
    return urls


def join_urls(urls: Iterable[str], **parameters: str) -> str:
    """Join URLs of one model, with the parameters of all URLs and with `parameters`. Raises ValueError for two values of one name."""
    bases, together = list[str](), dict[str, str]()
    for text in urls:
        base, _, query = text.partition("?")
        bases.append(base)
        for name, value in parse_qsl(query, keep_blank_values=True):
            if together.setdefault(name, value) != value:
                raise ValueError(f"the URLs of a model have the same parameters, but {name} is {together[name]} and {value}")
    together |= parameters
    return ",".join(bases) + (f"?{urlencode(together)}" if together else "")


def location(url: str) -> str:
    """Return the URL without key and parameters: the name of the engine for operators and for the choice of a session."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"


def without_version(place: str) -> str | None:
    """Return the location of an engine without `/v1` and what follows. None for a location without `/v1`."""
    base, version, _ = f"{place}/".partition("/v1/")
    return base if version else None


def engine_host(engine: Engine) -> str:
    """Return host and port of the engine at a URL, else `local`."""
    return urlsplit(getattr(engine, "base", "")).netloc or "local"


def _check_address(url: str) -> None:
    """Raise ValueError, without the key of `url`, for an `http://` URL without a host, and for a wrong port or wrong brackets."""
    try:
        parts = urlsplit(url)
        is_valid = parts.port != 0 and (parts.scheme not in POOLED or bool(parts.hostname))
    except ValueError:
        is_valid = False
    if not is_valid:
        scheme, _, address = url.partition("?")[0].partition("://")
        shown = f"{scheme}://{address.rpartition('@')[2]}"
        raise ValueError(f"{shown} must have a host and, behind a colon, a port from 1 to 65535, as in http://gpu:8000")


def _check(urls: Sequence[str]) -> None:
    """Raise ValueError for URLs that cannot serve the same model together."""
    places = [location(url) for url in urls]
    for url, place in zip(urls, places, strict=True):
        if urlsplit(url).scheme not in POOLED:
            raise ValueError(f"several URLs of a model must be {' or '.join(POOLED)} URLs of vLLM servers, not {place}")
        if places.count(place) > 1:
            raise ValueError(f"{place} is listed twice")
