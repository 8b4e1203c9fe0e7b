"""Queries of containers."""

from __future__ import annotations

from datetime import datetime

from django.db import IntegrityError
from django.db.models import QuerySet
from django.utils import timezone

from responses_app.models import Container
from responses_app.store.db import durable_transaction
from responses_app.store.files import quota


def of_project(project: str) -> QuerySet[Container]:
    """Select the containers of a project."""
    return Container.objects.filter(project=project)


async def find(project: str, uid: str) -> Container | None:
    """Find a container by id; None if the project has no such container."""
    return await of_project(project).filter(uid=uid).afirst()


def is_expired(row: Container, now: datetime) -> bool:
    """Return whether the container was not used for so long that the variables are lost."""
    return row.last_active_at + row.expires_after < now


def has_run(row: Container) -> bool:
    """Return whether code has run in the container, or is about to run."""
    return row.last_active_at > row.created_at


async def touch(row: Container, at: datetime | None = None) -> bool:
    """Set the time of the last use to `at` or now. Return False if the row was deleted."""
    row.last_active_at = at or timezone.now()
    return bool(await Container.objects.filter(pk=row.pk).aupdate(last_active_at=row.last_active_at))


def create(row: Container) -> bool:
    """Insert a container. Return False if the id exists. Raises ContainerQuotaExceeded."""
    try:
        with durable_transaction():
            quota.lock(row.project)
            quota.check_containers(row.project)
            row.save(force_insert=True)
    except IntegrityError:
        return False
    return True
