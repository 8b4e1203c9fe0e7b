"""Webhook endpoints of projects, and the deliveries of events to endpoints."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

MAX_WEBHOOK_NAME_CHARS = 100


class WebhookEndpoint(models.Model):
    """URL that receives the events of a project. The signing secrets are encrypted."""

    uid = models.CharField("id", max_length=64, unique=True)
    project = models.CharField(max_length=100, db_index=True)
    name = models.CharField(max_length=MAX_WEBHOOK_NAME_CHARS)
    url = models.TextField("URL")
    event_types = ArrayField(models.CharField(max_length=40))
    secret = models.BinaryField(editable=False)
    secret_hint = models.CharField(max_length=20, editable=False)
    old_secret = models.BinaryField(null=True, editable=False)
    old_secret_until = models.DateTimeField(null=True, help_text="Until then deliveries are signed with the old secret too.")
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    disabled_at = models.DateTimeField(null=True, help_text="When the endpoint answered 410. It gets no events from then on.")

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return self.uid

    @property
    def has_old_secret(self) -> bool:
        """Return whether deliveries are signed with the old secret too."""
        return self.old_secret is not None and self.old_secret_until is not None and timezone.now() < self.old_secret_until


class DeliveryStatus(models.TextChoices):
    """Status of a delivery. A pending delivery is sent at `due_at`."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class WebhookDelivery(models.Model):
    """Event for one endpoint, inserted in the transaction that ends the response. `uid` is the header `webhook-id`.

    `claim` belongs to the process that sends the delivery; `due_at` is the end of the claim then.
    """

    uid = models.CharField("id", max_length=64, unique=True)
    endpoint = models.ForeignKey(WebhookEndpoint, on_delete=models.CASCADE, related_name="deliveries", db_index=False)
    event_uid = models.CharField("event", max_length=64)
    event_type = models.CharField(max_length=40)
    response_uid = models.CharField("response", max_length=64)
    created_at = models.DateTimeField(db_index=True, help_text="When the response ended.")
    status = models.CharField(max_length=9, choices=DeliveryStatus, default=DeliveryStatus.PENDING)
    attempts = models.SmallIntegerField(default=0, db_default=0)
    due_at = models.DateTimeField(help_text="When the next attempt begins.")
    claim = models.UUIDField(null=True, editable=False)
    attempted_at = models.DateTimeField("last attempt", null=True)
    status_code = models.SmallIntegerField("answer", null=True, help_text="The HTTP status of the last answer.")
    error = models.CharField(max_length=200, blank=True, default="", db_default="")

    class Meta:
        ordering = ("-id",)
        verbose_name_plural = "webhook deliveries"
        indexes = (
            models.Index(fields=("endpoint", "due_at"), name="delivery_due", condition=models.Q(status="pending")),
            # Page of an endpoint, newest first.
            models.Index(fields=("endpoint", "-id"), name="delivery_endpoint"),
        )

    def __str__(self) -> str:
        return self.uid

    @property
    def is_failing(self) -> bool:
        """Return whether the delivery has failed, or waits after an attempt that failed."""
        return self.status == DeliveryStatus.FAILED or (self.status == DeliveryStatus.PENDING and self.attempts > 0)
