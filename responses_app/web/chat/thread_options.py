"""Options of a chat thread: rename, pin, share by a link, delete."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import cast

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from responses_app.models import MAX_THREAD_TITLE_CHARS, ChatThread, Response
from responses_app.store import audit_log
from responses_app.store.content.erasure import NOT_ERASED, erase_responses
from responses_app.utils.user_model import User
from responses_app.web.chat import shared_threads, threads
from responses_app.web.private import private
from responses_app.web.response.delete import cancel_running
from responses_app.web.response.detail import get_response

# Actions that change who can read a conversation, and their names in the audit log.
SHARING: Mapping[str, str] = {"share": "chat.share", "revoke": "chat.unshare"}


@private("GET", "POST")
def show(request: HttpRequest, uid: str) -> HttpResponse:
    """Render GET /chat/ID/options; POST changes the title, the pin or the shared link, by its field `action`."""
    row = get_response(request, uid)
    user = cast(User, request.user)
    choices = ChatThread.objects.filter(user=user, thread=threads.thread_key(row)).first() or ChatThread(
        user=user, thread=threads.thread_key(row), project=row.project
    )
    if request.method == "POST":
        action = request.POST.get("action", "")
        _change(choices, row, action, request.POST.get("title", ""))
        if action in SHARING:
            audit_log.record_on_page(request, SHARING[action], f"conversation {row.uid}", row.project)
        return redirect("chat-options", uid)
    link = request.build_absolute_uri(shared_threads.path_of(choices)) if choices.share_key else ""
    context = {
        "section": "chat",
        "uid": uid,
        "title": threads.title_for(row, user),
        "choices": choices,
        "link": link,
        "count": threads.responses_of_thread(row).count(),
        "max_title": MAX_THREAD_TITLE_CHARS,
    }
    return render(request, "web/chat_options.html", context)


@private("POST")
async def delete(request: HttpRequest, uid: str) -> HttpResponse:
    """Delete all responses of the thread at POST /chat/ID/delete, and the shared links to them."""
    row = await sync_to_async(get_response)(request, uid)
    key = threads.thread_key(row)
    responses = threads.responses_of_thread(row)
    for one in [one async for one in responses.filter(ended_at=None).only("uid", "project", "ended_at")]:
        if not await cancel_running(request, one):
            return redirect("chat-options", uid)
    if NOT_ERASED in await sync_to_async(lambda: dict(erase_responses(responses)))():
        await sync_to_async(messages.error)(
            request, "Some responses could not be deleted. The log of the server names the reason."
        )
        return redirect("chat-options", uid)
    await ChatThread.objects.filter(thread=key, project=row.project).adelete()
    actor = await sync_to_async(audit_log.actor_of)(request)
    await sync_to_async(audit_log.record)(actor, "chat.delete", f"conversation {row.uid}", row.project)
    await sync_to_async(messages.success)(request, "Deleted the conversation.")
    return redirect("chat")


def _change(choices: ChatThread, row: Response, action: str, title: str) -> None:
    if action == "rename":
        choices.title = " ".join(title.replace("\0", "").split())[:MAX_THREAD_TITLE_CHARS]
    elif action == "pin":
        choices.pinned_at = timezone.now()
    elif action == "unpin":
        choices.pinned_at = None
    elif action == "share":
        # A new link ends the one before.
        choices.share_key, choices.shared_uid = secrets.token_hex(16), row.uid
    elif action == "revoke":
        choices.share_key = choices.shared_uid = ""
    else:
        return
    choices.save()
