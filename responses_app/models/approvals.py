"""Used approvals and denials of MCP calls."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class Approval(models.Model):
    """Used answer to an approval request: the response that made the call, or that read the denial.

    The constraint allows a single use in a project.
    """

    project = models.CharField(max_length=100)
    request_uid = models.CharField("approval request", max_length=128)
    # No foreign key: the row outlives the response, and responses of `store: false` have no row.
    response_uid = models.CharField("response", max_length=64)
    created_at = models.DateTimeField(db_default=Now(), db_index=True)

    class Meta:
        ordering = ("-id",)
        constraints = (models.UniqueConstraint(fields=("project", "request_uid"), name="approval_once"),)

    def __str__(self) -> str:
        return self.request_uid
