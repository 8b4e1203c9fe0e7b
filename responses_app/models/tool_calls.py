"""Calls of server tools: outputs for the model, and used approvals of MCP calls."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from responses_app.models.responses import Response


class ToolOutput(models.Model):
    """Output of a server tool as the model reads it, where the item does not show it. Deleted with the response.

    `images` and `media_types` have the same length.
    """

    response = models.ForeignKey(Response, on_delete=models.CASCADE, related_name="tool_outputs")
    item_uid = models.CharField("item", max_length=128, db_index=True)
    text = models.BinaryField(null=True, help_text="UTF-8. A text column could not contain NUL.")
    images = ArrayField(models.BinaryField(), default=list)
    media_types = ArrayField(models.CharField(max_length=100), default=list)

    class Meta:
        ordering = ("-id",)
        constraints = (models.UniqueConstraint(fields=("response", "item_uid"), name="tool_output_once"),)

    def __str__(self) -> str:
        return self.item_uid


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
