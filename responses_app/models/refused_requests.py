"""Requests that were refused before a response existed."""

from __future__ import annotations

from django.db import models

from responses_app.models.keys import ApiKey


class RefusedRequest(models.Model):
    """Refused request: time, key, code and message, without content. `count` requests of a minute may share a row.

    `project` is empty, and `key` null, for a request without a valid key.
    """

    created_at = models.DateTimeField()
    request_id = models.CharField(max_length=64)
    project = models.CharField(max_length=100, blank=True, default="")
    key = models.ForeignKey(ApiKey, null=True, on_delete=models.SET_NULL, related_name="refused_requests")
    method = models.CharField(max_length=16)
    path = models.CharField(max_length=200)
    # Of the client, behind RESPONSES_TRUSTED_PROXIES too; `count` may have requests of other addresses.
    address = models.CharField(max_length=64, blank=True, default="", db_default="")
    status = models.SmallIntegerField()
    code = models.CharField(max_length=64, blank=True, default="")
    message = models.CharField(max_length=300)
    count = models.IntegerField(default=1)

    class Meta:
        ordering = ("-id",)
        indexes = (
            # List of a project, newest first.
            models.Index(fields=("project", "-id"), name="refused_project"),
            # Refused requests of a project beside the responses of the same time.
            models.Index(fields=("project", "created_at"), name="refused_project_created"),
            # The same for all projects, and the deletion of old rows.
            models.Index(fields=("created_at",), name="refused_created"),
        )

    def __str__(self) -> str:
        return f"{self.status} {self.code}"
