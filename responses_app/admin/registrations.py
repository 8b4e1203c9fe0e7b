"""Registrations of the admin: read-only responses, items and conversations; API keys and memberships to edit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.contrib.admin.widgets import AdminSplitDateTime
from django.db.models import DateTimeField, QuerySet
from django.forms import SplitDateTimeField
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from responses_app.admin.actions import ACTIONS
from responses_app.admin.audit import Audited
from responses_app.admin.read_only import PlainTitleAdmin, ReadOnlyAdmin
from responses_app.models import (
    ApiKey,
    Conversation,
    ConversationItem,
    Item,
    Membership,
    Project,
    Response,
    WebhookDelivery,
    WebhookEndpoint,
)
from responses_app.protocol.ids import PREFIXES
from responses_app.store import audit_log
from responses_app.web.render.sanitize import visible

# Large columns of a response, not shown in lists. The history of a long chain has thousands of keys.
LARGE_COLUMNS = ("history", "metadata")


class HasTimeFilter(admin.EmptyFieldListFilter):
    """Filter by whether a time is set, as of "revoked at", with the words "revoked", Yes and No."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Name the filter after the field, without "at"."""
        super().__init__(*args, **kwargs)
        self.title = str(self.title).removesuffix(" at")

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """Return All, Yes and No. Django has the words Empty and Not empty."""
        every, is_null, is_set = super().choices(changelist)
        yield every
        yield {**is_set, "display": "Yes"}
        yield {**is_null, "display": "No"}


class LabelledDateTime(AdminSplitDateTime):
    """Inputs of a date and a time with labels for screen readers. Django writes plain text beside these inputs."""

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        """Label both inputs."""
        super().__init__(attrs)
        for widget, label in zip(self.widgets, ("Date", "Time"), strict=True):
            widget.attrs["aria-label"] = label


@admin.register(Response)
class ResponseAdmin(ReadOnlyAdmin):
    """Responses, newest first, with links to the page with the log, to items, conversation and chain."""

    list_display = ("uid", "model", "status", "project", "input_tokens", "output_tokens", "created_at")
    list_filter = ("status", "background", "created_at", "key")
    search_fields = ("uid__startswith", "thread__exact")
    actions = ACTIONS
    fields = (
        ("uid", "status", "error_code"),
        ("model", "project", "key"),
        ("created_at", "ended_at"),
        ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens"),
        ("previous", "thread", "conversation_link"),
        "metadata",
        ("links", "log_form"),
    )
    readonly_fields = ("previous", "conversation_link", "links")

    def has_end_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may cancel and delete responses through the actions."""
        return request.user.has_perm("responses_app.delete_response")

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Allow the filter in the link from a conversation."""
        return lookup == "conversation__id__exact" or super().lookup_allowed(lookup, value, request)  # type: ignore[arg-type]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Response]:
        """Defer large columns."""
        return super().get_queryset(request).defer(*LARGE_COLUMNS)

    @admin.display(description="previous response")
    def previous(self, row: Response) -> str | SafeString:
        """Link to the previous response."""
        if not row.previous_uid:
            return "None"
        url = reverse("admin:responses_app_response_changelist")
        return format_html('<a href="{}?q={}">{}</a>', url, row.previous_uid, row.previous_uid)

    @admin.display(description="conversation")
    def conversation_link(self, row: Response) -> str | SafeString:
        """Link to the conversation."""
        if row.conversation is None:
            return "None"
        url = reverse("admin:responses_app_conversation_change", args=[row.conversation_id])
        return format_html('<a href="{}">{}</a>', url, row.conversation.uid)

    @admin.display(description="links")
    def links(self, row: Response) -> SafeString:
        """Link to the page of the response, to the items and to the thread."""
        return format_html(
            '<a href="{}">Open page</a> · <a href="{}?response__id__exact={}">Items</a> · <a href="{}?q={}">Thread</a>',
            reverse("response", args=[row.uid]),
            reverse("admin:responses_app_item_changelist"),
            row.pk,
            reverse("admin:responses_app_response_changelist"),
            row.thread,
        )


@admin.register(Item)
class ItemAdmin(ReadOnlyAdmin):
    """Items in wire form."""

    list_display = ("uid", "type", "direction", "response_uid", "project")
    list_filter = (("direction", admin.ChoicesFieldListFilter),)
    search_fields = ("uid__startswith",)
    search_help_text = "An item ID or its beginning, or a response ID."
    fields = (("uid", "type", "direction"), ("response_link", "project"), "wire")
    readonly_fields = ("response_link", "wire")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Item]:
        """Defer the bodies, not shown in lists."""
        return (
            super()
            .get_queryset(request)
            .select_related("response")
            .defer("body", *(f"response__{name}" for name in LARGE_COLUMNS))
        )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Item], search_term: str
    ) -> tuple[QuerySet[Item], bool]:
        """Search by response id or by item id: an OR across the join would read every item."""
        if search_term.startswith(PREFIXES["response"]):
            return queryset.filter(response__uid=search_term.strip()), False
        return super().get_search_results(request, queryset, search_term)

    @admin.display(description="response")
    def response_uid(self, row: Item) -> str:
        """Show the id of the response."""
        return row.response.uid if row.response else "Deleted"

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Item | None:
        """Return the item of a page, and record in the audit log that the user read the item."""
        row: Item | None = super().get_object(request, object_id, from_field)
        if row is not None:
            audit_log.record_once(audit_log.actor_of(request), "item.read", f"item {row.uid}", row.project)
        return row

    @admin.display(description="response")
    def response_link(self, row: Item) -> str | SafeString:
        """Link to the response."""
        if row.response is None:
            return "Deleted"
        url = reverse("admin:responses_app_response_change", args=[row.response_id])
        return format_html('<a href="{}">{}</a>', url, row.response.uid)

    @admin.display(description="body")
    def wire(self, row: Item) -> SafeString:
        """Show the item as JSON."""
        return format_html(
            '<pre class="json">{}</pre>', visible(json.dumps(json.loads(row.body), indent=2, ensure_ascii=False))
        )

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Allow the filter in the link from a response."""
        return lookup == "response__id__exact" or super().lookup_allowed(lookup, value, request)  # type: ignore[arg-type]


@admin.register(Conversation)
class ConversationAdmin(ReadOnlyAdmin):
    """Conversations, newest first, with links to items and responses."""

    list_display = ("uid", "project", "created_at")
    search_fields = ("uid__startswith",)
    fields = (("uid", "project", "created_at"), "metadata", "links")
    readonly_fields = ("links",)

    @admin.display(description="links")
    def links(self, row: Conversation) -> SafeString:
        """Link to the items and to the responses."""
        return format_html(
            '<a href="{}?q={}">Items</a> · <a href="{}?conversation__id__exact={}">Responses</a>',
            reverse("admin:responses_app_conversationitem_changelist"),
            row.uid,
            reverse("admin:responses_app_response_changelist"),
            row.pk,
        )


@admin.register(ConversationItem)
class ConversationItemAdmin(ReadOnlyAdmin):
    """Items of conversations, by position."""

    list_display = ("uid", "conversation", "item")
    list_select_related = ("conversation", "item")
    search_fields = ("conversation__uid__exact",)
    search_help_text = "A full conversation ID."

    def get_queryset(self, request: HttpRequest) -> QuerySet[ConversationItem]:
        """Defer the bodies of the items, not shown on any page."""
        rows: QuerySet[ConversationItem] = super().get_queryset(request).select_related("conversation", "item")
        return rows.defer("item__body")


@admin.register(ApiKey)
class ApiKeyAdmin(Audited, PlainTitleAdmin):
    """API keys, to rename or revoke. The key page and `manage.py createkey` create keys, and show the secret."""

    list_display = ("name", "project", "prefix", "created_at", "last_used_at", "revoked_at")
    list_filter = ("project", ("revoked_at", HasTimeFilter))
    formfield_overrides = {DateTimeField: {"widget": LabelledDateTime, "form_class": SplitDateTimeField}}  # noqa: RUF012 (so declared by Django)
    readonly_fields = ("prefix", "created_at", "last_used_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Deny: the admin cannot show the secret of a new key."""
        del request
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Deny: responses refer to the key, also after revocation."""
        del request, obj
        return False


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(ReadOnlyAdmin):
    """Webhook endpoints of all projects. The page of webhooks and the API create and change these."""

    list_display = ("uid", "name", "project", "url", "created_at", "disabled_at")
    list_filter = ("project", ("disabled_at", HasTimeFilter))
    search_fields = ("uid__startswith", "name")


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin):
    """Deliveries of webhooks, newest first."""

    list_display = ("uid", "endpoint", "event_type", "response_uid", "status", "attempts", "status_code", "created_at")
    list_select_related = ("endpoint",)
    list_filter = ("status",)
    search_fields = ("uid__startswith", "response_uid__exact")


@admin.register(Membership)
class MembershipAdmin(Audited, PlainTitleAdmin):
    """Memberships of users in projects."""

    list_display = ("user", "project", "role")
    list_select_related = ("user",)
    list_filter = ("project", "role")
    search_fields = ("user__username", "project")
    autocomplete_fields = ("user",)


@admin.register(Project)
class ProjectAdmin(Audited, PlainTitleAdmin):
    """Limits and retention of projects. A project without limits has no row."""

    list_display = ("name", "tokens_per_minute", "tokens_per_day", "spend_per_month", "retention_days")
    search_fields = ("name",)
