"""Addresses of the chat page."""

from __future__ import annotations

from django.urls import path

from responses_app.web import chat

urlpatterns = [
    path("chat", chat.new, name="chat"),
    path("chat/threads", chat.threads, name="chat-threads"),
    path("chat/secret", chat.secret, name="chat-secret"),
    path("chat/<str:uid>", chat.thread, name="chat-thread"),
    path("chat/<str:uid>/turns", chat.turns, name="chat-turns"),
    path("chat/<str:uid>/times", chat.times, name="chat-times"),
]
