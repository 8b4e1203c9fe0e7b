"""Project memberships and saved views of users, failed logins, and the audit log."""

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
            # Each sign-in counts the attempts for the account and those from the address.
            models.Index(fields=("account", "at"), name="login_attempt_account"),
            models.Index(fields=("address", "at"), name="login_attempt_address"),
        )

    def __str__(self) -> str:
        return f"from {self.address}"


class Role(models.IntegerChoices):
    """Role in a project. Each role has the rights of the smaller ones."""

    VIEWER = 1, "viewer"
    MEMBER = 2, "member"
    ADMIN = 3, "project admin"


class Membership(models.Model):
    """Role of a user in a project. Superusers are admins of all projects."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    project = models.CharField(max_length=100)
    role = models.PositiveSmallIntegerField(choices=Role.choices, default=Role.MEMBER)
    by_provider = models.BooleanField(default=False, editable=False, help_text="Given by the groups of the sign-in provider.")

    class Meta:
        ordering = ("project", "id")
        constraints = (models.UniqueConstraint(fields=("user", "project"), name="membership_once"),)

    def __str__(self) -> str:
        return f"{self.user} in {self.project}"

    @property
    def role_name(self) -> str:
        """Return the name of the role."""
        return Role(self.role).label


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


class AuditEntry(models.Model):
    """Entry of the audit log. A trigger of the migration refuses UPDATE and, except for the retention, DELETE.

    An entry has no content and no secrets, and no foreign keys, since these would change or delete the row.
    """

    class ActorKind(models.TextChoices):
        """Kind of an actor. A visitor is not signed in."""

        USER = "user"
        KEY = "key"
        COMMAND = "command"
        VISITOR = "visitor"

    class AuditOutcome(models.TextChoices):
        """Outcome of an action. A refused action was not tried."""

        SUCCESS = "success"
        FAILURE = "failure"
        REFUSED = "refused"

    at = models.DateTimeField()
    actor_kind = models.CharField(max_length=8, choices=ActorKind.choices)
    actor_id = models.BigIntegerField(null=True, help_text="The primary key of the account or of the API key.")
    actor = models.CharField(max_length=150, help_text="The name at that time.")
    address = models.CharField(max_length=64)
    action = models.CharField(max_length=40)
    object = models.CharField(max_length=200)
    project = models.CharField(max_length=100)
    outcome = models.CharField(max_length=8, choices=AuditOutcome.choices)

    class Meta:
        ordering = ("-id",)
        verbose_name = "audit log entry"
        verbose_name_plural = "audit log entries"
        indexes = (
            # Deletion of old entries.
            models.Index(fields=("at",), name="audit_at"),
            # A repeated read is recorded once an hour only.
            models.Index(fields=("action", "object", "at"), name="audit_object"),
        )

    def __str__(self) -> str:
        return f"{self.action} by {self.actor or self.actor_kind}"
