"""Usage of tokens, which outlives the responses."""

from __future__ import annotations

from django.db import models


class UsageRecord(models.Model):
    """Tokens, tool calls and cost of the responses that ended from `start` on, within `seconds`.

    A response that ends adds a row with 0 seconds. Maintenance merges these to rows of a minute and later of an hour. `key` and
    `user` are primary keys without a constraint: the usage of a deleted key stays. `cost` is in billionths of the currency unit.
    """

    start = models.DateTimeField(db_index=True)
    seconds = models.SmallIntegerField()
    project = models.CharField(max_length=100)
    key = models.BigIntegerField(null=True)
    user = models.IntegerField(null=True)
    model = models.CharField(max_length=200)
    requests = models.IntegerField()
    input_tokens = models.BigIntegerField()
    cached_tokens = models.BigIntegerField()
    output_tokens = models.BigIntegerField()
    tool_calls = models.IntegerField()
    cost = models.BigIntegerField()

    class Meta:
        ordering = ("-id",)
        indexes = (
            # `GET /v1/organization/usage/completions` and costs of one project.
            models.Index(fields=("project", "start"), name="usage_project"),
            # Rows that are not merged yet: few.
            models.Index(fields=("seconds", "start"), name="usage_unmerged", condition=models.Q(seconds__lt=3600)),
        )

    def __str__(self) -> str:
        return f"{self.project} {self.model} {self.start}"
