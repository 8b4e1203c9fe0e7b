"""Check of a connection: a request as sent by the client."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2

from responses_app.connect.connection import Connection
from responses_app.connect.facts import ModelFacts
from responses_app.installation.data_dir import SERVE

LIMIT_S: Final = 120.0
CONNECT_LIMIT_S: Final = 10.0
# Clients of other API formats than Responses, and the path of each below the base URL.
CHAT: Final = frozenset({"continue", "aider", "cline", "open-webui"})
MESSAGES: Final = frozenset({"claude-code"})
QUESTION: Final = "Answer with one word: are you there?"


class ConnectionProblem(Exception):
    """A server that does not answer, refuses the key, or has no such model; the message names the remedy."""


class UnknownKey(ConnectionProblem):
    """Key that the server does not know."""


def read_model(base_url: str, key: str, name: str | None) -> ModelFacts:
    """Return the facts about the model `name`, or about the first model. Raises ConnectionProblem."""
    listed = _json(_request("GET", f"{base_url}/models", key))
    models: list[dict[str, Any]] = [model for model in listed.get("data") or [] if isinstance(model, dict)]
    listed_model = next((model for model in models if name in (None, model.get("id"))), None)
    if listed_model is None:
        names = ", ".join(str(model.get("id")) for model in models) or "none"
        raise ConnectionProblem(f"The server at {base_url} has no model {name!r}. Its models: {names}.")
    facts = ModelFacts.from_json(listed_model)
    if not facts.context_window:
        raise ConnectionProblem(f"The model {facts.name!r} is not ready: its context window is not known yet. Try again.")
    return facts


def check_server(base_url: str) -> None:
    """Check that a server of this kind answers, before a key is made. Raises ConnectionProblem."""
    try:
        _request("GET", f"{base_url}/models", "sk-none")
    except UnknownKey:
        return
    raise ConnectionProblem(f"The server at {base_url} takes any key: is it the address of this server?")


def check_connection(connection: Connection, agent: str) -> str:
    """Send the request of `agent` and return a sentence about the answer. Raises ConnectionProblem."""
    if agent in CHAT | MESSAGES:
        return _check_other_format(connection, agent)
    body = request_body(connection.model, agent)
    response = _request("POST", f"{connection.base_url}/responses", connection.key, body)
    answer = _streamed(response) if body.get("stream") else _json(response)
    status, reason = answer.get("status"), (answer.get("incomplete_details") or {}).get("reason")
    if status not in ("completed", "incomplete"):
        message = (answer.get("error") or {}).get("message") or f"the response is {status}"
        raise ConnectionProblem(f"The model {connection.model.name!r} gave no answer: {message}")
    usage = answer.get("usage") or {}
    ending = f", cut at {reason}" if status == "incomplete" else ""
    return f"The model answered: {usage.get('input_tokens')} tokens in, {usage.get('output_tokens')} tokens out{ending}."


def _check_other_format(connection: Connection, agent: str) -> str:
    """Send a stream of Chat Completions or Messages and return a sentence about the answer. Raises ConnectionProblem."""
    path = "messages" if agent in MESSAGES else "chat/completions"
    response = _request("POST", f"{connection.base_url}/{path}", connection.key, other_body(connection.model, agent))
    events = [json.loads(line.removeprefix("data: ")) for line in response.text.splitlines() if line.startswith("data: {")]
    if problem := next((event["error"] for event in events if event.get("error")), None):
        raise ConnectionProblem(f"The model {connection.model.name!r} gave no answer: {problem.get('message')}")
    usage: dict[str, Any] = next((event["usage"] for event in reversed(events) if event.get("usage")), {})
    tokens = usage.get("input_tokens", usage.get("prompt_tokens")), usage.get("output_tokens", usage.get("completion_tokens"))
    return f"The model answered: {tokens[0]} tokens in, {tokens[1]} tokens out."


def other_body(model: ModelFacts, agent: str) -> dict[str, Any]:
    """Return the body that a client of Messages or Chat Completions sends."""
    body: dict[str, Any] = {"model": model.name, "messages": [{"role": "user", "content": QUESTION}], "stream": True}
    if agent in MESSAGES:
        return {**body, "max_tokens": 64, "system": [{"type": "text", "text": "You are an agent."}]}
    return {**body, "max_tokens": 64, "stream_options": {"include_usage": True}}


def request_body(model: ModelFacts, agent: str) -> dict[str, Any]:
    """Return the body that a client sends: all but the openai library stream, store nothing, and ask for a summary."""
    if agent == "openai-python":
        return {"model": model.name, "input": QUESTION, "max_output_tokens": 64}
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": QUESTION}]}
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    tool = {"type": "function", "name": "read_file", "description": "Read a file.", "parameters": schema, "strict": False}
    body: dict[str, Any] = {
        "model": model.name,
        "instructions": "You are an agent in the user's terminal.",
        "input": [message],
        "tools": [tool],
        "tool_choice": "auto",
        "stream": True,
        "store": False,
        "max_output_tokens": 64,
        "include": ["reasoning.encrypted_content"],
    }
    if agent in ("codex", "zed"):
        body |= {"parallel_tool_calls": True, "prompt_cache_key": "verbatim-connect"}
    if model.default_effort:
        body["reasoning"] = {"effort": model.default_effort, "summary": "auto"}
    return body


def _request(method: str, url: str, key: str, body: Mapping[str, Any] | None = None) -> httpx2.Response:
    limits = httpx2.Timeout(LIMIT_S, connect=CONNECT_LIMIT_S)
    try:
        response = httpx2.request(method, url, headers={"Authorization": f"Bearer {key}"}, json=body, timeout=limits)
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
        raise ConnectionProblem(
            f"{url} is no address of a server: {error}. It must look like http://127.0.0.1:8000."
        ) from error
    except httpx2.TimeoutException as error:
        raise ConnectionProblem(f"The server did not answer {method} {url} in time.{_proxy_hint(url)}") from error
    except httpx2.HTTPError as error:
        remedy = _proxy_hint(url) or f" Start it with {SERVE}, or name its address with --url."
        message = f"No server answers at {url}: {error}.{remedy}"
        raise ConnectionProblem(message) from error
    if response.status_code == 401:
        raise UnknownKey(f"The server at {url} does not know the key: does this command use the server's database?")
    if response.status_code >= 400:
        hint = "" if "x-request-id" in response.headers else _proxy_hint(url)
        raise ConnectionProblem(f"{method} {url} was answered {response.status_code}: {_error(response)}{hint}")
    return response


def _proxy_hint(url: str) -> str:
    """Return the remedy for a proxy that the environment names for `url`, or an empty text."""
    parts, proxies = urlsplit(url), getproxies()
    if not (proxies.get(parts.scheme) or proxies.get("all")) or proxy_bypass(parts.netloc):
        return ""
    variable = f"{parts.scheme}_proxy".upper() if proxies.get(parts.scheme) else "ALL_PROXY"
    return f" The request went to the proxy of {variable}: if the server needs none, add {parts.hostname} to NO_PROXY, also for clients."


def _json(response: httpx2.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise ConnectionProblem(f"{response.url} did not answer with a JSON object: is it the address of this server?")
    return body


def _streamed(response: httpx2.Response) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    for line in response.text.splitlines():
        if line.startswith("data: {"):
            answer = json.loads(line.removeprefix("data: ")).get("response") or answer
    return answer


def _error(response: httpx2.Response) -> str:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, LookupError, TypeError):
        return response.text[:200]
