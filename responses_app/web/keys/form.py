"""The form of a key: its name, its project while it is new, and its limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django import forms
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from responses_app.access.permissions import is_member, projects
from responses_app.models import ApiKey
from responses_app.runs import manager


class KeyForm(forms.ModelForm):  # type: ignore[type-arg]
    """The limits of a key and its name; an empty limit is none."""

    allowed_models = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple, label="Allowed models")

    class Meta:
        model = ApiKey
        fields = ("name", "requests_per_minute", "at_a_time", "allowed_models")
        labels: ClassVar = {"requests_per_minute": "Requests per minute", "at_a_time": "Concurrent responses"}

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # One that was allowed and is not served now stays allowed.
        names = dict.fromkeys([*manager.current().served, *self.instance.allowed_models])
        models = self.fields["allowed_models"]
        assert isinstance(models, forms.MultipleChoiceField)  # noqa: S101 - see above
        models.choices = [(name, name) for name in names]

    @property
    def limited(self) -> bool:
        """Whether it says more than a name."""
        return any(self[name].value() for name in ("requests_per_minute", "at_a_time", "allowed_models"))


class NewKeyForm(KeyForm):
    """A key that is to be made, in a project of whoever makes it."""

    project = forms.CharField(max_length=100)

    def __init__(self, user: AbstractBaseUser | AnonymousUser, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.user = user
        self.projects: Sequence[str] = projects(user)
        self.fields["project"].initial = next(iter(self.projects), "")

    def clean_project(self) -> str:
        """One of the projects of whoever asks; superusers may begin new ones."""
        project: str = self.cleaned_data["project"]
        if not is_member(self.user, project):
            raise forms.ValidationError("You’re not a member of this project.")
        return project

    def make(self) -> str:
        """The secret of the key, which is kept now."""
        told = self.cleaned_data
        limits = {name: told[name] for name in ("requests_per_minute", "at_a_time", "allowed_models")}
        _, secret = ApiKey.make(told["name"], told["project"], **limits)
        return secret
