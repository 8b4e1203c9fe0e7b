"""URL configuration of the chat page."""

from __future__ import annotations

from django.urls import path, re_path

from responses_app.web.chat import presets, shared_threads, thread_export, thread_options, views

urlpatterns = [
    path("chat", views.new, name="chat"),
    path("chat/threads", views.threads, name="chat-threads"),
    path("chat/secret", views.secret, name="chat-secret"),
    path("chat/presets", presets.presets, name="chat-presets"),
    re_path(r"^chat/(?P<uid>[\w:-]+)\.(?P<form>md|json)$", thread_export.download, name="chat-export"),
    path("chat/<str:uid>", views.thread, name="chat-thread"),
    path("chat/<str:uid>/options", thread_options.show, name="chat-options"),
    path("chat/<str:uid>/delete", thread_options.delete, name="chat-delete"),
    path("shared/<str:token>", shared_threads.show, name="shared-thread"),
    path("chat/<str:uid>/turns", views.turns, name="chat-turns"),
    path("chat/<str:uid>/messages", views.messages, name="chat-messages"),
    path("chat/<str:uid>/inspector", views.inspector, name="chat-inspector"),
    path("chat/<str:uid>/times", views.times, name="chat-times"),
]
