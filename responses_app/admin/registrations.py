"""The Django admin: responses with their logs, and items, to look at, keys to revoke. No page of it counts or joins a whole table."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.paginator import Paginator
from django.db import connection
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, reverse
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from responses_app.admin import log_view
from responses_app.admin.actions import ACTIONS
from responses_app.admin.log_view import pretty
from responses_app.models import ApiKey, Conversation, ConversationItem, Item, Membership, Response
from responses_app.protocol.ids import PREFIXES
from responses_app.store.log import reader

EXACT_UP_TO = 10_000
DEEPEST = 200_000
# Columns of a response that no page shows in a list: a chain of a thousand turns has thousands of keys.
WIDE = ("history", "metadata")
SEARCH_HELP = "An ID, or the beginning of one."


class CappedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts exactly up to a limit, and asks the planner's statistics beyond it: count(*) over millions of rows takes seconds."""

    @cached_property
    def count(self) -> int:
        """The number of rows, exact while it is small."""
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        exact = rows.order_by()[: EXACT_UP_TO + 1].count()
        return exact if exact <= EXACT_UP_TO or rows.query.where else max(exact, _estimate(rows.model))

    @cached_property
    def num_pages(self) -> int:
        """No page lies so deep that Postgres would step over millions of rows to find it; older ones are found by search."""
        pages: int = super().num_pages
        return min(pages, DEEPEST // self.per_page)


def _estimate(model: type[Model]) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples::bigint FROM pg_class WHERE oid = %s::regclass", [model._meta.db_table])
        row = cursor.fetchone()
    return int(row[0]) if row else 0


class Titled(admin.ModelAdmin):  # type: ignore[type-arg]
    """A list under the name of what it lists."""

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, titled `Responses` and not `Select response to view`."""
        title = capfirst(str(self.opts.verbose_name_plural))
        return super().changelist_view(request, {"title": title, **(extra_context or {})})


class ReadOnly(Titled):
    """To be looked at: the log is never edited by hand."""

    paginator = CappedPaginator
    show_full_result_count = False
    list_per_page = 50
    list_max_show_all = 50
    # Newest first, by primary key: any other order would sort the whole table.
    sortable_by = ()
    search_help_text = SEARCH_HELP

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never."""
        del request, obj
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never."""
        del request, obj
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never: DELETE /v1/responses/{id} keeps what later responses need, the admin would not."""
        del request, obj
        return False


@admin.register(Response)
class ResponseAdmin(ReadOnly):
    """Responses, newest first, with ways to their items, their log and their neighbours in the chain."""

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
        "log",
        "snapshot",
    )
    readonly_fields = ("previous", "conversation_link", "links", "log", "snapshot")

    def has_end_permission(self, request: HttpRequest) -> bool:
        """Whoever may delete responses may stop them too. Django's own deletion is for nobody: it keeps nothing that others need."""
        return request.user.has_perm("responses_app.delete_response")

    def get_urls(self) -> list[URLPattern]:
        """Those of its log too."""
        return [*log_view.urls(self), *super().get_urls()]

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """The link from a conversation filters by it."""
        return lookup == "conversation__id__exact" or super().lookup_allowed(lookup, value, request)  # type: ignore[arg-type]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Response]:
        """Without what no list shows."""
        return super().get_queryset(request).defer(*WIDE)

    @admin.display(description="previous response")
    def previous(self, row: Response) -> str | SafeString:
        """A link to the response that this one continues."""
        if not row.previous_uid:
            return "None"
        url = reverse("admin:responses_app_response_changelist")
        return format_html('<a href="{}?q={}">{}</a>', url, row.previous_uid, row.previous_uid)

    @admin.display(description="conversation")
    def conversation_link(self, row: Response) -> str | SafeString:
        """A link to the conversation that it belongs to."""
        if row.conversation is None:
            return "None"
        url = reverse("admin:responses_app_conversation_change", args=[row.conversation_id])
        return format_html('<a href="{}">{}</a>', url, row.conversation.uid)

    @admin.display(description="links")
    def links(self, row: Response) -> SafeString:
        """Links to its page for people, its items and the whole thread."""
        return format_html(
            '<a href="{}">Open page</a> · <a href="{}?response__id__exact={}">Items</a> · <a href="{}?q={}">Thread</a>',
            reverse("response", args=[row.uid]),
            reverse("admin:responses_app_item_changelist"),
            row.pk,
            reverse("admin:responses_app_response_changelist"),
            row.thread,
        )

    @admin.display(description="events")
    def log(self, row: Response) -> SafeString:
        """The beginning of the log, and a way to the rest."""
        return log_view.beginning(row)

    @admin.display(description="last event")
    def snapshot(self, row: Response) -> str | SafeString:
        """The last event of the log: the terminal snapshot, once there is one."""
        last = reader.last_event(reader.with_last_event(Response.objects.filter(pk=row.pk)).only("pk").get())
        return pretty(last) if last else "No events yet"


@admin.register(Item)
class ItemAdmin(ReadOnly):
    """Items in their wire form."""

    list_display = ("uid", "type", "direction", "response_uid", "project")
    list_filter = (("direction", admin.ChoicesFieldListFilter),)
    search_fields = ("uid__startswith",)
    search_help_text = "An item ID or its beginning, or a response ID."
    fields = (("uid", "type", "direction"), ("response_link", "project"), "wire")
    readonly_fields = ("response_link", "wire")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Item]:
        """A list shows no bodies, so it reads none."""
        return super().get_queryset(request).select_related("response").defer("body", *(f"response__{name}" for name in WIDE))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Item], search_term: str
    ) -> tuple[QuerySet[Item], bool]:
        """By one index or the other: an OR across the join would read every item."""
        if search_term.startswith(PREFIXES["response"]):
            return queryset.filter(response__uid=search_term.strip()), False
        return super().get_search_results(request, queryset, search_term)

    @admin.display(description="response")
    def response_uid(self, row: Item) -> str:
        """The id of its response."""
        return row.response.uid if row.response else "Deleted"

    @admin.display(description="response")
    def response_link(self, row: Item) -> str | SafeString:
        """A link to its response."""
        if row.response is None:
            return "Deleted"
        url = reverse("admin:responses_app_response_change", args=[row.response_id])
        return format_html('<a href="{}">{}</a>', url, row.response.uid)

    @admin.display(description="body")
    def wire(self, row: Item) -> SafeString:
        """The item as JSON."""
        return pretty(row.body)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """The link from a response filters by it."""
        return lookup == "response__id__exact" or super().lookup_allowed(lookup, value, request)  # type: ignore[arg-type]


@admin.register(Conversation)
class ConversationAdmin(ReadOnly):
    """Conversations, newest first, with a way to their items."""

    list_display = ("uid", "project", "created_at")
    search_fields = ("uid__startswith",)
    fields = (("uid", "project", "created_at"), "metadata", "links")
    readonly_fields = ("links",)

    @admin.display(description="links")
    def links(self, row: Conversation) -> SafeString:
        """Links to its items and its responses."""
        return format_html(
            '<a href="{}?q={}">Items</a> · <a href="{}?conversation__id__exact={}">Responses</a>',
            reverse("admin:responses_app_conversationitem_changelist"),
            row.uid,
            reverse("admin:responses_app_response_changelist"),
            row.pk,
        )


@admin.register(ConversationItem)
class EntryAdmin(ReadOnly):
    """Items by their place in a conversation."""

    list_display = ("uid", "conversation", "item")
    list_select_related = ("conversation", "item")
    search_fields = ("conversation__uid__exact",)
    search_help_text = "A full conversation ID."

    def get_queryset(self, request: HttpRequest) -> QuerySet[ConversationItem]:
        """Without the bodies of the items, which no page here shows."""
        rows: QuerySet[ConversationItem] = super().get_queryset(request).select_related("conversation", "item")
        return rows.defer("item__body")


@admin.register(ApiKey)
class ApiKeyAdmin(Titled):
    """Keys: to be renamed or revoked here, and made on the key page or by `manage.py createkey`, which show the secret once."""

    list_display = ("name", "project", "prefix", "created_at", "last_used_at", "revoked_at")
    list_filter = ("project", ("revoked_at", admin.EmptyFieldListFilter))
    readonly_fields = ("prefix", "created_at", "last_used_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Never: a key made here could not show its secret."""
        del request
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never: a revoked key still names who made a response."""
        del request, obj
        return False


@admin.register(Membership)
class MembershipAdmin(Titled):
    """Who belongs to which project."""

    list_display = ("user", "project")
    list_select_related = ("user",)
    list_filter = ("project",)
    search_fields = ("user__username", "project")
    autocomplete_fields = ("user",)
