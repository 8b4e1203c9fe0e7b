"""Objects of each version, made by the functions of `FILL`, with the bodies of GET by path."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any, Final

from tests.support import plain_http
from tests.support.upgrade.client import LIMIT_S, OldServer
from tests.support.upgrade.versions import API_KEY
from tests.support.waiting import wait_until

Bodies = dict[str, Any]
WEATHER: Final = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOL: Final = {"type": "function", "name": "get_weather", "parameters": WEATHER}
PROJECT: Final = "team"


def fill_0_1_0(server: OldServer, _receiver: str) -> Bodies:
    """Make objects of every kind of version 0.1.0 by four requests to the model."""
    ask, respond = server.ask, server.respond
    conversation = ask("POST", "conversations", json={"metadata": {"topic": "upgrade"}})["id"]
    first = respond(metadata={"team": "a"}, instructions="Be kind.")["id"]
    second = respond(previous_response_id=first, reasoning={"effort": "low"})["id"]
    called = respond(tools=[TOOL], conversation=conversation)["id"]
    paths = [f"responses/{uid}" for uid in (first, second, called, respond_in_background(server))]
    paths += [f"responses/{uid}/input_items" for uid in (first, second, called)]
    paths += [f"conversations/{conversation}", f"conversations/{conversation}/items", *make_files(server)]
    return {path: ask("GET", path) for path in paths}


def respond_in_background(server: OldServer) -> str:
    """Create a background response, wait for the end, and return the id."""
    uid: str = server.respond(background=True)["id"]
    wait_until(lambda: server.ask("GET", f"responses/{uid}")["status"] == "completed", limit_s=LIMIT_S)
    return uid


def make_files(server: OldServer) -> list[str]:
    """Make a file, a vector store and a container, and return the paths of all."""
    ask = server.ask
    upload = {"file": ("foxes.txt", b"Foxes hunt at night.\n")}
    file = ask("POST", "files", files=upload, data={"purpose": "assistants"})["id"]
    store = ask("POST", "vector_stores", json={"name": "animals", "file_ids": [file]})["id"]
    wait_until(lambda: ask("GET", f"vector_stores/{store}")["file_counts"]["completed"] == 1, limit_s=LIMIT_S)
    container = ask("POST", "containers", json={"name": "box"})["id"]
    ask("POST", f"containers/{container}/files", files={"file": ("bread.txt", b"Bread.\n")})
    paths = ["files", f"files/{file}", "vector_stores", f"vector_stores/{store}/files"]
    return [*paths, "containers", f"containers/{container}/files"]


def fill_0_2_0(server: OldServer, receiver: str) -> Bodies:
    """Make objects of every kind of version 0.2.0. Logs of responses are archived."""
    ask = server.ask
    endpoint = make_endpoint(server, receiver)
    bodies = fill_0_1_0(server, receiver)
    (store,) = (path.split("/")[1] for path in bodies if re.fullmatch(r"vector_stores/\w+/files", path))
    tool = {"type": "file_search", "vector_store_ids": [store]}
    searched = server.respond(tools=[tool], include=["file_search_call.results"])["id"]
    completion = complete(server)
    message = send_message(server)
    limits = ("--requests-per-minute=600", "--at-a-time=8", "--model=tape", "--max-output-tokens=500")
    key = server.manage("createkey", "ci", f"--project={PROJECT}", *limits).split()[-1]
    of_key = server.respond(key)["id"]
    deleted = server.respond()["id"]
    ask("DELETE", f"responses/{deleted}")
    refused = plain_http.post(f"{server.url}/v1/responses", json={"model": "none", "input": "Hi"}, headers=_bearer(API_KEY))
    assert refused.is_client_error, refused.text
    bodies |= {"key": key, "of_key": of_key, **use_pages(server, next(iter(bodies)).split("/")[1])}
    stored = completion.replace("chatcmpl-", "resp_")
    paths = [f"responses/{uid}" for uid in (searched, message, stored)] + [f"responses/{searched}/input_items"]
    paths += [f"chat/completions/{completion}", f"chat/completions/{completion}/messages"]
    paths += ["webhook_endpoints", f"webhook_endpoints/{endpoint}"]
    # Usage of this day alone: the test uses tokens too.
    now = int(time.time())
    midnight = now - now % 86_400
    paths.append(f"organization/usage/completions?start_time={midnight}&end_time={now + 1}&limit=1&bucket_width=1d")
    return {**bodies, **{path: ask("GET", path) for path in paths}}


def make_endpoint(server: OldServer, receiver: str) -> str:
    """Make a webhook endpoint with a rotated secret, and return the id."""
    body = {"name": "ends", "url": receiver, "event_types": ["response.completed"]}
    endpoint: str = server.ask("POST", "webhook_endpoints", json=body)["id"]
    server.ask("POST", f"webhook_endpoints/{endpoint}/rotate_secret", json={"keep_old_secret_active_for_24_hours": True})
    return endpoint


def complete(server: OldServer) -> str:
    """Create and change a stored completion, and return the id."""
    body = {"model": "tape", "messages": [{"role": "user", "content": "Hi"}], "store": True, "metadata": {"team": "b"}}
    uid: str = server.ask("POST", "chat/completions", json=body)["id"]
    server.ask("POST", f"chat/completions/{uid}", json={"metadata": {"team": "c"}})
    return uid


def send_message(server: OldServer) -> str:
    """Create a response by the Messages API, and return the id."""
    body = {"model": "tape", "max_tokens": 100, "messages": [{"role": "user", "content": "Hi"}]}
    uid: str = server.ask("POST", "messages", json=body)["id"]
    return uid.replace("msg_", "resp_")


def use_pages(server: OldServer, uid: str) -> Bodies:
    """Chat, rerun a response, save a view and a preset, add a member, set limits. Return the path of a shared thread."""
    with server.browser() as browser:
        secret = browser.client.get("/chat/secret").json()["secret"]
        thread = server.respond(secret, metadata={"place": "chat"})["id"]
        server.respond(secret, rerun={"of": uid, "tools": "recorded"}, metadata={"place": "rerun"})
        for action in ("rename", "pin", "share"):
            page = browser.post(f"/chat/{thread}/options", f"/chat/{thread}/options", action=action, title="Greetings")
        shared = re.search(r"/(shared/[\w:.-]+)", page)
        assert shared is not None, page
        browser.post("/chat/presets", name="kind", instructions="Be kind.")
        browser.post("/responses/views", name="ended", query="status=completed")
        browser.post(f"/members?project={PROJECT}", f"/members?project={PROJECT}", username="operator", role="3")
    server.manage("projectlimits", PROJECT, "--tokens-per-day=1000000")
    return {"shared": shared[1]}


def fill_waiting(server: OldServer) -> Bodies:
    """Make responses whose logs wait for archiving: in the background, with a webhook that is not delivered, and a stream."""
    first = respond_in_background(server)
    body = {"model": "tape", "input": "Hi", "stream": True, "previous_response_id": first}
    answer = plain_http.post(f"{server.url}/v1/responses", json=body, headers=_bearer(API_KEY), timeout=LIMIT_S)
    uids = (first, re.findall(r'"id":"(resp_\w+)"', answer.text)[0])
    return {f"responses/{uid}": server.ask("GET", f"responses/{uid}") for uid in uids}


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


FILL: Final[dict[str, Callable[[OldServer, str], Bodies]]] = {"0.1.0": fill_0_1_0, "0.2.0": fill_0_2_0}
