"""Web search of the operator: parsing of RESPONSES_WEB_SEARCH. No message contains a value, as values may be secrets."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from django.core.exceptions import ImproperlyConfigured

from responses_app.installation.addresses import is_host
from responses_app.installation.data_dir import EXAMPLES
from responses_app.tools.http_headers import value_problem
from responses_app.tools.web_search.backends.services import DEFAULT_URLS, FOLDER, KEYS_NEEDED, NAMES, folder_of
from responses_app.utils.json_setting import has_white_space, load_json, split_url, unknown_key_problem

NAME = "RESPONSES_WEB_SEARCH"
# Pages for the option `--demo-tools`.
DEMO_PAGES = {"backend": FOLDER, "url": f"folder://{quote(str(EXAMPLES / 'pages'))}"}
KEYS = ("backend", "url", "key", "private_hosts")


def parse_web_search(value: str) -> dict[str, Any]:
    """Parse JSON, the JSON file that `value` names, or `folder:///path`. Return an empty dict without web search.

    Raises ImproperlyConfigured.
    """
    value = value.strip()
    if not value:
        return {}
    if value.startswith("folder:"):
        setting: object = {"backend": FOLDER, "url": value}
    else:
        setting = load_json(NAME, value, "a JSON object, the path of a JSON file, or a URL folder:///path")
    problem = _problem(setting)
    if problem or not isinstance(setting, dict):
        raise ImproperlyConfigured(f"{NAME}: {problem}")
    return setting


def _problem(setting: object) -> str | None:
    if not isinstance(setting, dict):
        return "must be an object"
    unknown = unknown_key_problem(setting, KEYS)
    if unknown:
        return unknown
    if setting.get("backend") not in NAMES:
        return f"'backend' must be one of {', '.join(NAMES)}"
    wrong = next((key for key in ("url", "key") if not isinstance(setting.get(key, ""), str)), None)
    if wrong:
        return f"{wrong!r} must be a text"
    return _hosts_problem(setting.get("private_hosts", [])) or (
        _folder_problem(setting) if setting["backend"] == FOLDER else _service_problem(setting)
    )


def _hosts_problem(hosts: object) -> str | None:
    if isinstance(hosts, list) and all(isinstance(host, str) and _is_lower_host(host) for host in hosts):
        return None
    return "'private_hosts' must be a list of host names in lower case, each with or without a port"


def _is_lower_host(text: str) -> bool:
    return text == text.lower() and is_host(text, with_port=True)


def _folder_problem(setting: dict[str, Any]) -> str | None:
    url = setting.get("url", "")
    if not url.startswith("folder:///"):
        return "'url' must be a URL of the form folder:///path"
    return None if folder_of(url).is_dir() else "the folder of 'url' does not exist"


def _service_problem(setting: dict[str, Any]) -> str | None:
    name, key = setting["backend"], setting.get("key", "")
    url = setting.get("url") or DEFAULT_URLS[name]
    if not url:
        return f"'url' is needed for the back end {name!r}"
    if not _is_http_url(url):
        return "'url' must be an http or https URL without a user name and a password"
    if has_white_space(url):
        return "'url' must have no white space and no invisible characters (a blank is written as %20)"
    if not key and name in KEYS_NEEDED:
        return f"'key' is needed for the back end {name!r}"
    problem = value_problem(key)
    return f"'key': {problem}" if problem else None


def _is_http_url(url: str) -> bool:
    parts = split_url(url)
    return parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
