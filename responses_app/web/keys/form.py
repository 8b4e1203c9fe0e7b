"""Forms to create and change an API key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django import forms
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from responses_app.access import tool_access
from responses_app.access.permissions import has_role, projects
from responses_app.models import ApiKey, Role
from responses_app.runs import manager
from responses_app.web.keys.expiry import FutureExpiry

LIMITS = (
    "requests_per_minute",
    "max_concurrent",
    "default_output_tokens",
    "max_output_tokens",
    "max_run_seconds",
    "tokens_per_minute",
    "tokens_per_day",
    "spend_per_month",
    "tool_calls_per_day",
    "retention_days",
    "expires_at",
    "allowed_models",
    "allowed_tools",
)


class KeyForm(FutureExpiry):
    """Form for the name and the limits of an API key. An empty field means no limit."""

    allowed_models = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple, label="Allowed models")

    allowed_tools = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple, label="Allowed tools")

    class Meta:
        """Model and fields of the form."""

        model = ApiKey
        fields = ("name", *LIMITS)
        widgets: ClassVar = {"expires_at": forms.DateTimeInput({"type": "datetime-local"}, "%Y-%m-%dT%H:%M")}
        labels: ClassVar = {
            "requests_per_minute": "Requests per minute",
            "max_concurrent": "Concurrent responses",
            "default_output_tokens": "Output tokens by default",
            "max_output_tokens": "Output tokens per response",
            "max_run_seconds": "Seconds per response",
            "tokens_per_minute": "Tokens per minute",
            "tokens_per_day": "Tokens per day",
            "tool_calls_per_day": "Tool calls per day",
            "retention_days": "Days that responses are kept",
            "expires_at": "Expires at (UTC)",
        }

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # A model stays allowed while the server does not serve the model, and a tool while the server does not run the tool.
        self._offer("allowed_models", [*manager.current().served, *self.instance.allowed_models])
        self._offer("allowed_tools", [*tool_access.known_names(), *self.instance.allowed_tools])

    def _offer(self, name: str, values: Sequence[str]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.MultipleChoiceField)  # noqa: S101 - declared as such above
        field.choices = [(value, value) for value in dict.fromkeys(values)]

    def keep_limits(self) -> None:
        """Ignore the limits in the data of the form: only an admin of the project changes these."""
        for name in LIMITS:
            self.fields[name].disabled = True

    @property
    def has_limits(self) -> bool:
        """Return True if any limit is set."""
        return any(self[name].value() for name in LIMITS)


class NewKeyForm(KeyForm):
    """Form to create an API key in a project of `user`."""

    project = forms.CharField(max_length=100)

    def __init__(self, user: AbstractBaseUser | AnonymousUser, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.user = user
        self.projects: Sequence[str] = projects(user, Role.MEMBER)
        self.fields["project"].initial = next(iter(self.projects), "")

    def clean_project(self) -> str:
        """Reject projects in which `user` has no role to create keys. Superusers may name a new project."""
        project: str = self.cleaned_data["project"]
        if not has_role(self.user, project, Role.MEMBER):
            raise forms.ValidationError("You need the role “member” in this project.")
        return project

    def create_key(self) -> tuple[ApiKey, str]:
        """Create the key. Return the row and the secret."""
        data = self.cleaned_data
        limits = {name: data[name] for name in LIMITS}
        return ApiKey.make(data["name"], data["project"], owner=self.user, **limits)
