"""Forms to create and change an API key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django import forms
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from responses_app.access.permissions import is_member, projects
from responses_app.models import ApiKey
from responses_app.runs import manager


class KeyForm(forms.ModelForm):  # type: ignore[type-arg]
    """Form for the name and the limits of an API key. An empty field means no limit."""

    allowed_models = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple, label="Allowed models")

    class Meta:
        """Model and fields of the form."""

        model = ApiKey
        fields = ("name", "requests_per_minute", "max_concurrent", "allowed_models")
        labels: ClassVar = {"requests_per_minute": "Requests per minute", "max_concurrent": "Concurrent responses"}

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # A model stays allowed while the server does not serve the model.
        names = dict.fromkeys([*manager.current().served, *self.instance.allowed_models])
        models = self.fields["allowed_models"]
        assert isinstance(models, forms.MultipleChoiceField)  # noqa: S101 - declared as such above
        models.choices = [(name, name) for name in names]

    @property
    def has_limits(self) -> bool:
        """Return True if any limit is set."""
        return any(self[name].value() for name in ("requests_per_minute", "max_concurrent", "allowed_models"))


class NewKeyForm(KeyForm):
    """Form to create an API key in a project of `user`."""

    project = forms.CharField(max_length=100)

    def __init__(self, user: AbstractBaseUser | AnonymousUser, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.user = user
        self.projects: Sequence[str] = projects(user)
        self.fields["project"].initial = next(iter(self.projects), "")

    def clean_project(self) -> str:
        """Reject projects without `user` as a member. Superusers may name a new project."""
        project: str = self.cleaned_data["project"]
        if not is_member(self.user, project):
            raise forms.ValidationError("You’re not a member of this project.")
        return project

    def create_key(self) -> str:
        """Create the key and return the secret."""
        data = self.cleaned_data
        limits = {name: data[name] for name in ("requests_per_minute", "max_concurrent", "allowed_models")}
        _, secret = ApiKey.make(data["name"], data["project"], **limits)
        return secret
