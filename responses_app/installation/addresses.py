"""Settings that are addresses: URLs, origins and names of hosts. No message contains a user name or a password of a URL."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from urllib.parse import SplitResult

from django.core.exceptions import ImproperlyConfigured

from responses_app.utils.json_setting import has_white_space, split_url

# Names, also with letters of other scripts and with the underscores of containers, and addresses.
_HOST = re.compile(r"\w[\w.-]*|[0-9a-f.:]*:[0-9a-f.:]*(%\w+)?")
SANDBOX_FORMS = "unix:/path/of/socket or http://host:port"


def check_sandbox_url(name: str, url: str, token: str) -> str:
    """Return the URL of a runner, empty if not set. Raises ImproperlyConfigured for another form, or without a token for HTTP."""
    if url.startswith("unix:"):
        if not PurePosixPath(url.removeprefix("unix:")).is_absolute():
            raise ImproperlyConfigured(f"{name} must be {SANDBOX_FORMS}: the path of the socket must begin with /")
    elif url:
        parts = _check_http_url(name, url, SANDBOX_FORMS, ("http",))
        if parts.port is None or parts.path.strip("/") or parts.query:
            raise ImproperlyConfigured(f"{name} must be {SANDBOX_FORMS}: a port and no path")
        if not token:
            raise ImproperlyConfigured(f"{name} needs RESPONSES_SANDBOX_TOKEN, the token of the runner at this address")
    return url


def check_http_url(name: str, url: str, example: str) -> str:
    """Return the URL of an HTTP server, empty if not set. Raises ImproperlyConfigured, with an example, for another form."""
    if url:
        _check_http_url(name, url, f"an http or https URL such as {example}", ("http", "https"))
    return url


def check_embeddings(url: str, model: str, key: str) -> str:
    """Return RESPONSES_EMBEDDINGS_URL. Raises ImproperlyConfigured for another form, and for a URL or a model without the other."""
    check_http_url("RESPONSES_EMBEDDINGS_URL", url, "http://localhost:8001/v1")
    if url and not model:
        raise ImproperlyConfigured("RESPONSES_EMBEDDINGS_URL needs RESPONSES_EMBEDDINGS_MODEL, the name of the model there")
    for name, value in (("RESPONSES_EMBEDDINGS_MODEL", model), ("RESPONSES_EMBEDDINGS_KEY", key)):
        if value and not url:
            raise ImproperlyConfigured(f"{name} needs RESPONSES_EMBEDDINGS_URL, the address of the embeddings server")
    return url


def check_allowed_hosts(hosts: list[str]) -> list[str]:
    """Return ALLOWED_HOSTS. Raises ImproperlyConfigured for what is no name of a host, as Django would refuse every request."""
    if not hosts:
        raise ImproperlyConfigured(
            "ALLOWED_HOSTS is empty, so that no page would be answered: name the hosts, such as verbatim.example.com, or unset it"
        )
    for host in hosts:
        if host != "*" and not is_host(host.removeprefix("."), with_port=False):
            raise ImproperlyConfigured(
                f"ALLOWED_HOSTS must be host names without scheme, port and path, such as verbatim.example.com, not {host!r}"
            )
    return hosts


def check_trusted_origins(origins: list[str]) -> list[str]:
    """Return CSRF_TRUSTED_ORIGINS. Raises ImproperlyConfigured for other forms, which Django would ignore."""
    for origin in origins:
        scheme, separator, host = origin.partition("://")
        if scheme not in ("http", "https") or not separator or not is_host(host.removeprefix("*."), with_port=True):
            raise ImproperlyConfigured(
                f"CSRF_TRUSTED_ORIGINS must be origins such as https://verbatim.example.com, without a path, not {origin!r}"
            )
    return origins


def _check_http_url(name: str, url: str, forms: str, schemes: tuple[str, ...]) -> SplitResult:
    parts = split_url(url)
    if parts is None or parts.scheme not in schemes or not parts.hostname or parts.fragment or has_white_space(url):
        raise ImproperlyConfigured(f"{name} must be {forms}, not {_without_password(url)!r}")
    if "@" in parts.netloc:
        raise ImproperlyConfigured(f"{name} must be {forms}, without a user name and a password")
    return parts


def _without_password(url: str) -> str:
    return url.rpartition("@")[2]


def is_host(text: str, *, with_port: bool) -> bool:
    """Return whether a text is one name of a host, or an address, and no pattern of names."""
    parts = split_url(f"//{text}")
    if parts is None or parts.netloc != text or "@" in text or not parts.hostname:
        return False
    return bool(_HOST.fullmatch(parts.hostname)) and (with_port or parts.port is None)
