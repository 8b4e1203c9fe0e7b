"""The Django app."""

from __future__ import annotations

from django.apps import AppConfig


class ResponsesConfig(AppConfig):
    """One app holds the whole server."""

    name = "responses_app"
    verbose_name = "Verbatim"
    default_auto_field = "django.db.models.BigAutoField"
