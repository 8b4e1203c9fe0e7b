"""Addresses for people."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import include, path, re_path

from responses_app.web import (
    chain,
    compare,
    conversation,
    deletion,
    download,
    events,
    keys,
    live,
    prompt,
    responses,
    sign_in,
    verdict,
    views,
    wire,
)

RESPONSE = "responses/<str:uid>"

urlpatterns = [
    path("", views.home, name="home"),
    path("sign-in", sign_in.with_account, name="sign-in"),
    path("sign-in/<str:token>", sign_in.with_link, name="sign-in-link"),
    path("sign-out", LogoutView.as_view(), name="sign-out"),
    path("keys", keys.index, name="keys"),
    path("keys/<int:pk>", keys.change, name="key"),
    path("keys/<int:pk>/revoke", keys.revoke, name="key-revoke"),
    path("responses", responses.index, name="responses"),
    path("responses/compare", compare.show, name="compare"),
    re_path(r"^responses/(?P<uid>[\w:-]+)\.(?P<form>jsonl?|sse)$", download.log, name="response-log"),
    path(RESPONSE, conversation.show, name="response"),
    path(f"{RESPONSE}/events", events.index, name="response-events"),
    path(f"{RESPONSE}/events/<int:place>", events.show, name="response-event"),
    path(f"{RESPONSE}/wire", wire.show, name="response-wire"),
    path(f"{RESPONSE}/prompt", prompt.show, name="response-prompt"),
    path(f"{RESPONSE}/chain", chain.show, name="response-chain"),
    path(f"{RESPONSE}/check", verdict.show, name="response-check"),
    path(f"{RESPONSE}/live", live.stream, name="response-live"),
    path(f"{RESPONSE}/cancel", deletion.cancel, name="response-cancel"),
    path(f"{RESPONSE}/delete", deletion.delete, name="response-delete"),
    path(f"{RESPONSE}/items/<str:item>", download.item, name="response-item"),
    path(f"{RESPONSE}/items/<str:item>/images/<int:place>", download.image, name="response-image"),
    path("", include("responses_app.web.chat_urls")),
]
