"""Limits of projects, and the counters of limits."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MinValueValidator
from django.db import models

from responses_app.models.limits.fields import UsageLimits
from responses_app.models.limits.numbers import LimitField


class Project(UsageLimits):
    """Limits of a project. A project without limits needs no row: the name in keys and memberships is enough."""

    name = models.CharField(max_length=100, unique=True)
    storage_mib = LimitField(
        "storage",
        null=True,
        blank=True,
        validators=(MinValueValidator(1),),
        help_text="MiB of all files, in place of RESPONSES_FILES_MIB_PER_PROJECT. Leave blank for that setting.",
    )

    class Meta:
        ordering = ("name",)
        verbose_name = "project limits"
        verbose_name_plural = "project limits"

    def __str__(self) -> str:
        return self.name

    @property
    def limited_name(self) -> tuple[str, str]:
        """The scope and the name of the project."""
        return "project", self.name


class OpenReservation(models.Model):
    """Reservation of a request without a row in `Response`, or before the row. Maintenance releases those of dead workers.

    `differences` are those of `store.limits.counters.SETTLE_SQL`.
    """

    # No foreign key, for the reason given at `Lease.worker`.
    worker = models.UUIDField()
    differences = models.JSONField()

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{len(self.differences)} of {self.worker}"


class LimitCounter(models.Model):
    """Amount that a key or a project has used, or reserved, in the window that began at `start`.

    A limit of a minute has buckets: `recent` has the amounts of each, the newest first, which began at `start`. `used` is the sum as of the
    last change.
    """

    name = models.CharField(max_length=200, primary_key=True)
    start = models.DateTimeField()
    used = models.BigIntegerField()
    recent = ArrayField(models.BigIntegerField(), null=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return f"{self.name}: {self.used}"
