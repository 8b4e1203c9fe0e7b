"""Outputs of server tools for the model."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

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
