"""Shared chat threads: a page for everyone with the link, which is signed and can be revoked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cachetools import TTLCache
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.crypto import constant_time_compare
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from responses_app.access.permissions import has_role
from responses_app.models import ChatThread, Response, Role, Status
from responses_app.protocol.items.registry import FAMILIES
from responses_app.web.chat import threads, turns
from responses_app.web.render.file_citations import with_names
from responses_app.web.render.markdown import markdown

SALT: Final = "shared chat thread"
MISSING = "This link is not valid, or it has been revoked."
# Requests of an address in a minute, counted by each process.
MAX_PER_MINUTE = 60
_requests: TTLCache[str, int] = TTLCache(maxsize=10_000, ttl=60)
TOOL_NAMES: Final = {
    "code_interpreter_call": "Code interpreter",
    "web_search_call": "Web search",
    "file_search_call": "File search",
}
# Endings on the page. The message of an error is for the members of the project.
ENDINGS: Final = {Status.FAILED: "This answer failed.", Status.CANCELLED: "Stopped."}
# Types of items that are shown as a call.
CALL_TYPES: Final = frozenset({*FAMILIES.calls_by_output.values(), *TOOL_NAMES, "mcp_call"})


def path_of(choices: ChatThread) -> str:
    """Return the path of the link to a shared thread."""
    return reverse("shared-thread", args=[signing.dumps([choices.pk, choices.share_key], salt=SALT)])


@never_cache
@require_safe
def show(request: HttpRequest, token: str) -> HttpResponse:
    """Render GET /shared/TOKEN: messages, names of tools and endings. Instructions, reasoning, arguments, ids and metadata are left out."""
    if _is_too_frequent(str(request.META.get("REMOTE_ADDR"))):
        response = render(
            request, "web/shared_thread.html", {"refused": "Too many requests. Try again in a minute."}, status=429
        )
        response["Retry-After"] = "60"
        return response
    choices = _choices(token)
    row = Response.objects.filter(project=choices.project, uid=choices.shared_uid, stored=True).first()
    if row is None:
        raise Http404(MISSING)
    title = choices.title or threads.titles([row])[row.pk]
    messages = [message for turn in turns.turns_of(row)["turns"] for message in _messages(turn)]
    response = render(request, "web/shared_thread.html", {"title": title, "shown": messages, "created_at": row.created_at})
    response["X-Robots-Tag"] = "noindex"
    response["Referrer-Policy"] = "no-referrer"
    return response


def _choices(token: str) -> ChatThread:
    """Return the shared thread of a link. Raises Http404 for a link that is revoked, or whose person lost the project."""
    try:
        pk, share_key = signing.loads(token, salt=SALT)
    except signing.BadSignature:
        raise Http404(MISSING) from None
    choices = ChatThread.objects.select_related("user").filter(pk=pk).first()
    if choices is None or not choices.share_key or not constant_time_compare(choices.share_key, share_key):
        raise Http404(MISSING)
    if not has_role(choices.user, choices.project, Role.MEMBER):
        raise Http404(MISSING)
    return choices


def forget_requests() -> None:
    """Forget the counted requests."""
    _requests.clear()


def _is_too_frequent(address: str) -> bool:
    count = _requests.get(address, 0) + 1
    # A refused request does not prolong the minute.
    if count <= MAX_PER_MINUTE:
        _requests[address] = count
    return count > MAX_PER_MINUTE


def _messages(turn: Mapping[str, Any]) -> Iterator[tuple[str, str, SafeString | str]]:
    """Yield speaker, kind (`text`, `markdown`, `tool` or `ending`) and content of the items of a turn."""
    response = turn["response"] or {}
    for item in turn["input"]:
        if item.get("type", "message") == "message" and item.get("role") == "user":
            yield "User", "text", _text(item.get("content"))
        else:
            # The client may have sent what a model wrote elsewhere.
            yield from _of_model(item, "Assistant")
    for item in response.get("output", ()):
        yield from _of_model(item, turn["model"])
    if ending := turn["times"]["ending"] or ENDINGS.get(turn["status"], ""):
        yield turn["model"], "ending", ending


def _of_model(item: Mapping[str, Any], speaker: str) -> Iterator[tuple[str, str, SafeString | str]]:
    kind = item.get("type", "message")
    if kind == "message" and item.get("role") == "assistant":
        yield speaker, "markdown", markdown(_text(item.get("content")))
    elif kind in CALL_TYPES:
        yield speaker, "tool", str(item.get("name") or TOOL_NAMES.get(kind, kind))


def _text(content: Any) -> str:
    """Return the texts of a message, with a word for each image and file."""
    parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content or []
    words = {"input_image": "[Image]", "input_file": "[File]"}
    texts = (str(part.get("text") or part.get("refusal") or words.get(str(part.get("type")), "")) for part in parts)
    return "\n\n".join(with_names(text, part.get("annotations")) for text, part in zip(texts, parts, strict=True))
