"""Registrations of the admin: read-only responses, items and conversations; API keys and memberships to edit."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.contrib.admin.widgets import AdminSplitDateTime, AutocompleteSelect
from django.core.exceptions import PermissionDenied
from django.db.models import DateTimeField, QuerySet
from django.forms import SplitDateTimeField
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from responses_app.access.permissions import visible_responses
from responses_app.admin.actions import ACTIONS
from responses_app.admin.audit import Audited
from responses_app.admin.filters import HasTimeFilter, NewestFilter
from responses_app.admin.links import joined
from responses_app.admin.project_names import NamesProject
from responses_app.admin.read_only import READ_ONLY, PlainTitleAdmin, ReadOnlyAdmin
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
from responses_app.web.keys.expiry import FutureExpiry
from responses_app.web.render.sanitize import visible

# Large columns of a response, not shown in lists. The history of a long chain has thousands of keys.
LARGE_COLUMNS = ("history", "metadata")


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

    read_only = READ_ONLY + " To delete responses with their log, check them in the list and choose “Delete responses”."
    list_display = ("uid", "model", "status", "project", "input_tokens", "output_tokens", "created_at")
    list_filter = ("status", "background", "created_at", ("key", NewestFilter))
    search_fields = ("uid__startswith", "thread__exact")
    actions = ACTIONS
    fields = (
        ("uid", "status", "error_code"),
        ("model", "api_format", "project", "key"),
        ("created_at", "ended_at"),
        ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens"),
        ("previous", "thread", "conversation_link"),
        "metadata",
        ("links", "log_form"),
    )
    readonly_fields = ("previous", "conversation_link", "links")
    request_fields = ("conversation_link", "links")

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
    def conversation_link(self, request: HttpRequest, row: Response) -> str | SafeString:
        """Link to the conversation."""
        return self.link(request, row.conversation, "None")

    @admin.display(description="links")
    def links(self, request: HttpRequest, row: Response) -> SafeString:
        """Link to the page of the response, to the items and to the thread."""
        is_visible = visible_responses(request.user).filter(pk=row.pk).exists()
        page = [(reverse("response", args=[row.uid]), "Open page")] if is_visible else []
        items = self.list_link(request, Item, f"response__id__exact={row.pk}", "Items")
        return joined([*page, *items, *self.list_link(request, Response, urlencode({"q": row.thread}), "Thread")])


@admin.register(Item)
class ItemAdmin(ReadOnlyAdmin):
    """Items in wire form."""

    list_display = ("uid", "type", "direction", "response_uid", "project")
    list_filter = (("direction", admin.ChoicesFieldListFilter),)
    search_fields = ("uid__startswith",)
    search_help_text = "An item ID or its beginning, or a response ID."
    fields = (("uid", "type", "direction"), ("response_link", "project"), "wire")
    readonly_fields = ("response_link", "wire")
    request_fields = ("response_link",)

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
    def response_link(self, request: HttpRequest, row: Item) -> str | SafeString:
        """Link to the response."""
        return self.link(request, row.response, "Deleted")

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
    readonly_fields = request_fields = ("links",)

    @admin.display(description="links")
    def links(self, request: HttpRequest, row: Conversation) -> SafeString:
        """Link to the items and to the responses."""
        items = self.list_link(request, ConversationItem, f"q={row.uid}", "Items")
        return joined([*items, *self.list_link(request, Response, f"conversation__id__exact={row.pk}", "Responses")])


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
class ApiKeyAdmin(Audited, NamesProject, PlainTitleAdmin):
    """API keys, to rename or revoke. The key page and `manage.py createkey` create keys, and show the secret."""

    list_display = ("name", "project", "prefix", "created_at", "last_used_at", "revoked_at")
    list_filter = ("project", ("revoked_at", HasTimeFilter))
    form = FutureExpiry
    formfield_overrides = {DateTimeField: {"widget": LabelledDateTime, "form_class": SplitDateTimeField}}  # noqa: RUF012 (so declared by Django)
    readonly_fields = ("prefix", "created_at", "last_used_at")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the fields, with the name and the project before the limits."""
        first = ("name", "project")
        return [*first, *(field for field in super().get_fields(request, obj) if field not in first)]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Deny: the admin cannot show the secret of a new key."""
        del request
        return False

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Deny, with the page that creates keys."""
        del request, form_url, extra_context
        raise PermissionDenied("To create a key, open the page “Keys”, which shows the secret once.")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Deny: responses refer to the key, also after revocation."""
        del request, obj
        return False


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(ReadOnlyAdmin):
    """Webhook endpoints of all projects. The page of webhooks and the API create and change these."""

    read_only = empty_help = "To add, change or delete a webhook, open the page “Webhooks”, or use the API."
    list_display = ("uid", "name", "project", "url", "created_at", "disabled_at")
    list_filter = ("project", ("disabled_at", HasTimeFilter))
    search_fields = ("uid__startswith", "name")
    search_help_text = "An ID or its beginning, or a part of the name."


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin):
    """Deliveries of webhooks, newest first."""

    # The long ids come last, so that a screen has the status beside each delivery.
    list_display = ("uid", "status", "attempts", "status_code", "event_type", "created_at", "endpoint", "response_uid")
    list_select_related = ("endpoint",)
    list_filter = ("status",)
    search_fields = ("uid__startswith", "response_uid__exact")
    search_help_text = "The ID of a delivery or its beginning, or a response ID."


class AccountSelect(AutocompleteSelect):
    """Search of an account. The only name for screen readers is the text within, which Django leaves empty."""

    def build_attrs(self, base_attrs: Any, extra_attrs: Any = None) -> dict[str, Any]:
        """Return the attributes, with a text for the empty field."""
        return {**super().build_attrs(base_attrs, extra_attrs), "data-placeholder": "Choose a user"}


@admin.register(Membership)
class MembershipAdmin(Audited, NamesProject, PlainTitleAdmin):
    """Memberships of users in projects."""

    list_display = ("user", "project", "role")
    list_select_related = ("user",)
    list_filter = ("project", "role")
    search_fields = ("user__username", "project")
    autocomplete_fields = ("user",)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Give the empty field of the account a name."""
        widget = AccountSelect(db_field, self.admin_site)
        return super().formfield_for_foreignkey(db_field, request, **{"widget": widget, **kwargs})


@admin.register(Project)
class ProjectAdmin(Audited, NamesProject, PlainTitleAdmin):
    """Limits and retention of projects. A project without limits has no row."""

    project_field = "name"
    list_display = ("name", "tokens_per_minute", "tokens_per_day", "spend_per_month", "retention_days")
    search_fields = ("name",)
