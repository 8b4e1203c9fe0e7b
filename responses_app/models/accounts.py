"""Project memberships and saved views of users, and failed logins."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class LoginAttempt(models.Model):
    """Failed or unfinished login. `account` is a hash, because some people type a password as the name."""

    account = models.CharField(max_length=64)
    address = models.CharField(max_length=64)
    at = models.DateTimeField()

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(fields=("account", "at"), name="login_attempt_account"),
            models.Index(fields=("address", "at"), name="login_attempt_address"),
        )

    def __str__(self) -> str:
        return f"from {self.address}"


class Membership(models.Model):
    """Right of a user to see the responses of a project and to create API keys for the project. Superusers belong to all projects."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    project = models.CharField(max_length=100)

    class Meta:
        ordering = ("project", "id")
        constraints = (models.UniqueConstraint(fields=("user", "project"), name="membership_once"),)

    def __str__(self) -> str:
        return f"{self.user} in {self.project}"


class SavedView(models.Model):
    """Filters of the response list under a name, for one user. `query` is the query string."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views")
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=4000)

    class Meta:
        ordering = ("name",)
        constraints = (models.UniqueConstraint(fields=("user", "name"), name="saved_view_once"),)

    def __str__(self) -> str:
        return self.name
