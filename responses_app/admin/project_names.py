"""Names of projects in admin forms: suggestions, and a warning for a name that is new."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.widgets import AdminTextInputWidget
from django.db.models import Field, Model
from django.forms import Form
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from responses_app.access.permissions import known_projects
from responses_app.web.render.sanitize import visible

NEW_PROJECT = "“{}” is a new project: no key and no other member has it. If that is a typing error, change the name."


class ProjectInput(AdminTextInputWidget):
    """Input of the name of a project, with the names of all projects as suggestions."""

    def render(self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None) -> SafeString:
        """Render the input and the list of names."""
        listed = f"{name}_names"
        options = format_html_join("", '<option value="{}">', ((one,) for one in known_projects()))
        text = super().render(name, value, {**(attrs or {}), "list": listed, "autocomplete": "off"}, renderer)
        return format_html('{}<datalist id="{}">{}</datalist>', text, listed, options)


class NamesProject(admin.ModelAdmin):  # type: ignore[type-arg]
    """Admin of rows with the name of a project in `project_field`."""

    project_field = "project"

    def formfield_for_dbfield(self, db_field: Field[Any, Any], request: HttpRequest, **kwargs: Any) -> Any:
        """Suggest the names of projects."""
        if db_field.name == self.project_field:
            kwargs["widget"] = ProjectInput
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Model, form: Form, change: bool) -> None:
        """Save, and warn of the name of a project that is new."""
        name = form.cleaned_data.get(self.project_field)
        is_new = self.project_field in form.changed_data and name not in known_projects()
        super().save_model(request, obj, form, change)
        if is_new:
            messages.warning(request, NEW_PROJECT.format(visible(str(name))))
