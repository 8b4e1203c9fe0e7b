"""Webhook pages: the endpoints of the user's projects, and the deliveries of an endpoint with a button to resend."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.cache import patch_cache_control
from django.utils.text import capfirst

from responses_app.access.permissions import projects
from responses_app.models import MAX_WEBHOOK_NAME_CHARS, Role, WebhookDelivery, WebhookEndpoint
from responses_app.schemas.parsing.webhook_endpoints import EVENT_TYPES, endpoint_url_problem
from responses_app.store import audit_log, webhooks
from responses_app.store.cluster.clock import shared_clock
from responses_app.store.paging import RowPage, read_page
from responses_app.web.files.lists import newest_page, row_of_user
from responses_app.web.keys import new_secret
from responses_app.web.private import private
from responses_app.webhooks.endpoints import new_endpoint, rotate

PAGE_SIZE = 50
STILL_VALID = (
    "The secret was not changed: a new secret ends the former one, which is still valid. Open “New secret” to confirm."
)
NO_ADMIN = "To create webhook endpoints you need the role “project admin”. Ask an admin of the project."


class EndpointForm(forms.Form):
    """Form of a new endpoint in a project of `user`."""

    name = forms.CharField(max_length=MAX_WEBHOOK_NAME_CHARS)
    url = forms.CharField(label="URL")
    project = forms.ChoiceField()
    event_types = forms.MultipleChoiceField(
        label="Events", choices=[(name, name) for name in EVENT_TYPES], initial=EVENT_TYPES, widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, user: AbstractBaseUser | AnonymousUser, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.projects = projects(user, Role.ADMIN)
        field = self.fields["project"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - declared as such above
        field.choices = [(name, name) for name in self.projects]

    def clean_url(self) -> str:
        """Reject addresses that would never get a request."""
        url: str = self.cleaned_data["url"]
        if problem := endpoint_url_problem(url):
            raise ValidationError(capfirst(problem))
        return url

    def create(self, request: HttpRequest) -> str | None:
        """Insert the endpoint and return the secret; None with an error if the project has too many endpoints."""
        row, secret = new_endpoint(**self.cleaned_data)
        try:
            webhooks.create(row)
        except webhooks.TooManyEndpoints:
            self.add_error(None, f"The project has {webhooks.MAX_ENDPOINTS_PER_PROJECT} webhook endpoints, which is the limit.")
            return None
        _record(request, "webhook.change", row)
        return secret


@private("GET", "HEAD", "POST")
def index(request: HttpRequest) -> HttpResponse:
    """List the endpoints and create an endpoint at GET and POST /webhooks. Only the first page after the POST shows the secret."""
    form = EndpointForm(request.user, request.POST if request.method == "POST" else None)
    if form.is_bound and not form.projects:
        raise PermissionDenied(NO_ADMIN)
    if form.is_bound and form.is_valid() and (secret := form.create(request)):
        new_secret.put(request, secret)
        return redirect("webhooks")
    page, is_first = newest_page(request, WebhookEndpoint.objects.all(), PAGE_SIZE)
    next_uid = page.rows[-1].uid if page.more else None
    newest = webhooks.newest_deliveries(page.rows)
    endpoints = [(row, newest.get(row.pk)) for row in page.rows]
    return _page(request, "web/webhooks.html", {"form": form, "endpoints": endpoints, "next": next_uid, "is_first": is_first})


@private("GET", "HEAD", "POST")
def show(request: HttpRequest, uid: str) -> HttpResponse:
    """Show the deliveries at GET /webhooks/ID, newest first. A POST gives the endpoint a new secret; the old secret is valid for a day.

    A secret that is still valid from an earlier rotation ends only with the field `end_old`, so that a second click ends none.
    """
    endpoint = _endpoint(request, uid)
    if request.method == "POST" and endpoint.has_old_secret and "end_old" not in request.POST:
        messages.error(request, STILL_VALID)
        return redirect("webhook", uid)
    if request.method == "POST":
        new_secret.put(request, rotate(endpoint, keep_old=True))
        _record(request, "webhook.change", endpoint)
        return redirect("webhook", uid)
    page, is_first = _deliveries(request, endpoint)
    context = {
        "endpoint": endpoint,
        "deliveries": page.rows,
        "next": page.rows[-1].uid if page.more else None,
        "is_first": is_first,
    }
    return _page(request, "web/webhook.html", context)


@private("GET", "HEAD", "POST")
def delete(request: HttpRequest, uid: str) -> HttpResponse:
    """Show a confirmation page at GET /webhooks/ID/delete, and delete the endpoint at POST."""
    endpoint = _endpoint(request, uid)
    if request.method != "POST":
        return render(request, "web/webhook_delete.html", {"section": "keys", "endpoint": endpoint})
    endpoint.delete()
    _record(request, "webhook.delete", endpoint)
    messages.success(request, "The webhook endpoint was deleted.")
    return redirect("webhooks")


@private("POST")
def resend(request: HttpRequest, uid: str, delivery: int) -> HttpResponse:
    """Send a delivery again at POST /webhooks/ID/deliveries/N/resend."""
    row = get_object_or_404(WebhookDelivery, endpoint=_endpoint(request, uid), pk=delivery)
    webhooks.resend(row, shared_clock.now())
    messages.success(request, "The delivery will be sent again in a moment.")
    return redirect("webhook", uid)


def _record(request: HttpRequest, action: str, endpoint: WebhookEndpoint) -> None:
    audit_log.record_on_page(request, action, f"webhook endpoint {endpoint.uid}", endpoint.project)


def _page(request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    context = {"section": "keys", "secret": new_secret.take(request), **context}
    page = render(request, template, context)
    if context["secret"]:
        patch_cache_control(page, no_transform=True)
    return page


def _deliveries(request: HttpRequest, endpoint: WebhookEndpoint) -> tuple[RowPage[WebhookDelivery], bool]:
    rows, after = endpoint.deliveries.all(), request.GET.get("after", "").replace("\0", "") or None
    page = read_page(rows, limit=PAGE_SIZE, newest_first=True, after=after)
    is_first = after is None or page is None
    return page or read_page(rows, limit=PAGE_SIZE, newest_first=True, after=None) or RowPage([], more=False), is_first


def _endpoint(request: HttpRequest, uid: str) -> WebhookEndpoint:
    return row_of_user(request, WebhookEndpoint.objects.all(), uid)
