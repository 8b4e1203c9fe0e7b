"""Presets of instructions in the chat: saved by name, for one user."""

from __future__ import annotations

from typing import cast

from django.http import HttpRequest, HttpResponse, JsonResponse

from responses_app.models import MAX_PRESET_NAME_CHARS, ChatPreset
from responses_app.utils.user_model import User
from responses_app.web.private import private

MAX_PRESETS = 50
MAX_INSTRUCTIONS_CHARS = 50_000


@private("GET", "POST")
def presets(request: HttpRequest) -> HttpResponse:
    """Return GET /chat/presets as JSON, the instructions by name. POST saves `instructions` under `name`, or deletes without these.

    The answer to a POST is that of GET, or the status 400 with a sentence.
    """
    user = cast(User, request.user)
    problem = _change(user, request) if request.method == "POST" else ""
    if problem:
        return HttpResponse(problem, status=400, content_type="text/plain; charset=utf-8")
    return JsonResponse(dict(ChatPreset.objects.filter(user=user).values_list("name", "instructions")))


def _change(user: User, request: HttpRequest) -> str:
    """Save or delete a preset. Return what is wrong; an empty text after a change."""
    name = request.POST.get("name", "").replace("\0", "").strip()
    own = ChatPreset.objects.filter(user=user)
    if not name or len(name) > MAX_PRESET_NAME_CHARS:
        return f"The name of a preset has 1 to {MAX_PRESET_NAME_CHARS} characters."
    if "instructions" not in request.POST:
        own.filter(name=name).delete()
        return ""
    instructions = request.POST["instructions"].replace("\0", "")
    if len(instructions) > MAX_INSTRUCTIONS_CHARS:
        return f"Instructions have at most {MAX_INSTRUCTIONS_CHARS} characters."
    if not own.filter(name=name).exists() and own.count() >= MAX_PRESETS:
        return f"You have {MAX_PRESETS} presets, which is the limit. Delete one first."
    own.update_or_create(user=user, name=name, defaults={"instructions": instructions})
    return ""
