"""Processes of the server, their leases, and samples of the storage."""

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
    reads_packed = models.BooleanField(default=False, db_default=False, help_text="Reads packed events.")
    reads_groups = models.BooleanField(default=False, db_default=False, help_text="Reads rows of several events.")
    reads_shared = models.BooleanField(default=False, db_default=False, help_text="Reads prompts that share tokens.")
    secret_key_id = models.CharField(
        max_length=8, blank=True, default="", db_default="", help_text="A short hash of its SECRET_KEY."
    )
    shared_settings = models.JSONField(
        default=dict, blank=True, db_default={}, help_text="Settings that all processes need alike."
    )

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


class StorageSample(models.Model):
    """State of the database at a time: one row for each minute, after two days one for each hour.

    The totals are counters of Postgres, which a crash of Postgres sets to 0.
    """

    taken_at = models.DateTimeField(primary_key=True)
    database_bytes = models.BigIntegerField()
    free_bytes = models.BigIntegerField(null=True, help_text="Free space of the disk of Postgres; empty if unknown.")
    created = models.BigIntegerField(help_text="Responses that were created, in total.")
    deleted = models.BigIntegerField(help_text="Responses that were deleted, in total.")
    unarchived = models.IntegerField(help_text="Responses whose events are rows.")
    waiting = models.IntegerField(help_text="Ended responses whose log waits for archiving.")
    oldest_wait_s = models.IntegerField(help_text="Seconds that the oldest log waits.")

    class Meta:
        ordering = ("taken_at",)

    def __str__(self) -> str:
        return f"{self.taken_at:%Y-%m-%d %H:%M}: {self.database_bytes:,} bytes"
