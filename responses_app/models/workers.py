"""Worker processes and leases of responses."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from responses_app.models.responses import Response


class Worker(models.Model):
    """Process running responses. A worker without a recent `heartbeat_at` is considered dead."""

    uid = models.UUIDField("id", primary_key=True)
    name = models.CharField(max_length=200)
    served_models = ArrayField(models.CharField(max_length=200), default=list, help_text="The models that it serves.")
    heartbeat_at = models.DateTimeField()

    class Meta:
        ordering = ("-heartbeat_at",)

    def __str__(self) -> str:
        return self.name


class Lease(models.Model):
    """Ownership of a running or queued response. `epoch` rises with every owner, so writes of a former owner are refused."""

    response = models.OneToOneField(Response, on_delete=models.CASCADE, primary_key=True, related_name="lease")
    # No foreign key: a lease outlives the row of a dead worker. A lease without a live worker is free to claim.
    worker = models.UUIDField(null=True, db_index=True)
    epoch = models.IntegerField(default=1)
    model = models.CharField(max_length=200)
    waiting = models.BooleanField(default=False, help_text="Not started; starts when a process has capacity.")
    started_at = models.DateTimeField(
        null=True, help_text="When the work on a queued response began. Empty for a response that never waited."
    )
    cancelled = models.BooleanField(default=False, help_text="The owner ends the response.")
    priority = models.IntegerField(default=0)
    last_number = models.IntegerField(default=-1, help_text="The number of the last event at the latest takeover.")
    secrets = models.BinaryField(null=True, help_text="Encrypted HTTP headers for MCP servers. Deleted with the lease.")
    stalled_takeovers = models.IntegerField(default=0, help_text="Consecutive takeovers without a new event.")

    class Meta:
        ordering = ("-response",)

    def __str__(self) -> str:
        return f"{self.response_id} by {self.worker}, {self.epoch}"
