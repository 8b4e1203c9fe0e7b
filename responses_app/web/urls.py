"""URL configuration of the pages."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import include, path, re_path

from responses_app.web import connect, mcp_servers, models, webhooks
from responses_app.web import home as web_home
from responses_app.web import storage as storage_page
from responses_app.web import usage as usage_page
from responses_app.web.accounts import members, sign_in
from responses_app.web.files import containers as container_views
from responses_app.web.files import vector_stores as vector_store_views
from responses_app.web.files import views as files_views
from responses_app.web.keys import views as keys_views
from responses_app.web.rerun import views as rerun_views
from responses_app.web.response import cache, conformance, conversation, items, lineage, live, prompt
from responses_app.web.response import delete as response_delete
from responses_app.web.response.event_log import events, export, wire
from responses_app.web.responses import response_list, saved_views, selection

RESPONSE = "responses/<str:uid>"

urlpatterns = [
    path("", web_home.home, name="home"),
    path("sign-in", sign_in.with_account, name="sign-in"),
    path("sign-in/<str:token>", sign_in.with_link, name="sign-in-link"),
    path("sign-out", LogoutView.as_view(), name="sign-out"),
    path("usage", usage_page.show, name="usage"),
    path("usage.csv", usage_page.export, name="usage-csv"),
    path("storage", storage_page.show, name="storage"),
    path("keys", keys_views.index, name="keys"),
    path("keys/<int:pk>", keys_views.change, name="key"),
    path("keys/<int:pk>/rotate", keys_views.rotate, name="key-rotate"),
    path("keys/<int:pk>/revoke", keys_views.revoke, name="key-revoke"),
    path("members", members.index, name="members"),
    path("members/<int:pk>", members.change, name="member"),
    path("webhooks", webhooks.index, name="webhooks"),
    path("webhooks/<str:uid>", webhooks.show, name="webhook"),
    path("webhooks/<str:uid>/delete", webhooks.delete, name="webhook-delete"),
    path("webhooks/<str:uid>/deliveries/<int:delivery>/resend", webhooks.resend, name="webhook-resend"),
    path("files", files_views.index, name="files"),
    path("files/<str:uid>/content", files_views.download, name="file-content"),
    path("files/<str:uid>/delete", files_views.delete, name="file-delete"),
    path("containers", container_views.index, name="containers"),
    path("containers/<str:uid>/files/<str:file>/content", container_views.download, name="container-file"),
    path("containers/<str:uid>/delete", container_views.delete, name="container-delete"),
    path("vector-stores", vector_store_views.index, name="vector-stores"),
    path("vector-stores/<str:uid>", vector_store_views.show, name="vector-store"),
    path("vector-stores/<str:uid>/delete", vector_store_views.delete, name="vector-store-delete"),
    path("vector-stores/<str:uid>/files/<str:file>/remove", vector_store_views.remove_file, name="vector-store-file-remove"),
    path("connect", connect.show, name="connect"),
    path("models", models.show, name="models"),
    path("mcp-servers", mcp_servers.index, name="mcp-servers"),
    path("mcp-servers/<slug:label>/test", mcp_servers.test, name="mcp-server-test"),
    path("responses", response_list.index, name="responses"),
    path("responses/selection", selection.act, name="responses-selection"),
    path("responses/views", saved_views.save, name="saved-views"),
    path("responses/views/<int:pk>/delete", saved_views.delete, name="saved-view-delete"),
    path("responses/compare", rerun_views.compare, name="compare"),
    re_path(r"^responses/(?P<uid>[\w:-]+)\.(?P<form>jsonl?|sse)$", export.log, name="response-log"),
    path(RESPONSE, conversation.show, name="response"),
    path(f"{RESPONSE}/events", events.index, name="response-events"),
    path(f"{RESPONSE}/events/<int:place>", events.show, name="response-event"),
    path(f"{RESPONSE}/events/times", events.times, name="response-event-times"),
    path(f"{RESPONSE}/wire", wire.show, name="response-wire"),
    path(f"{RESPONSE}/prompt", prompt.show, name="response-prompt"),
    path(f"{RESPONSE}/cache", cache.show, name="response-cache"),
    path(f"{RESPONSE}/chain", lineage.show, name="response-chain"),
    path(f"{RESPONSE}/check", conformance.show, name="response-check"),
    path(f"{RESPONSE}/rerun", rerun_views.show, name="response-rerun"),
    path(f"{RESPONSE}/rerun/column", rerun_views.column, name="response-rerun-column"),
    path(f"{RESPONSE}/rerun/context", rerun_views.context, name="response-rerun-context"),
    path(f"{RESPONSE}/takeovers", conversation.takeovers, name="response-takeovers"),
    path(f"{RESPONSE}/live", live.stream, name="response-live"),
    path(f"{RESPONSE}/cancel", response_delete.cancel, name="response-cancel"),
    path(f"{RESPONSE}/delete", response_delete.delete, name="response-delete"),
    path(f"{RESPONSE}/items/<str:item>", export.item, name="response-item"),
    path(f"{RESPONSE}/items/<str:item>/fragment", items.show, name="response-item-fragment"),
    path(f"{RESPONSE}/items/<str:item>/text", export.text, name="response-item-text"),
    path(f"{RESPONSE}/items/<str:item>/selected", items.selected, name="response-item-selected"),
    path(f"{RESPONSE}/items/<str:item>/images/<int:place>", export.image, name="response-image"),
    path("", include("responses_app.web.chat.urls")),
]
