"""Containers of the code interpreter and the files in containers."""

from __future__ import annotations

from datetime import timedelta

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

MAX_CONTAINER_NAME_CHARS = 256
DEFAULT_EXPIRY_MINUTES = 20
MAX_EXPIRY_MINUTES = 1440


class MemoryLimit(models.TextChoices):
    """Memory limit of a container, as in the OpenAI API reference."""

    ONE = "1g"
    FOUR = "4g"
    SIXTEEN = "16g"
    SIXTY_FOUR = "64g"


class FileSource(models.TextChoices):
    """Source of a container file, as in the OpenAI API reference."""

    USER = "user"
    ASSISTANT = "assistant"


class Container(models.Model):
    """Container in which the model's code runs. The row outlives the sandbox: files of an expired container can still be read."""

    uid = models.CharField("id", max_length=64, unique=True)
    project = models.CharField(max_length=100)
    name = models.CharField(max_length=MAX_CONTAINER_NAME_CHARS)
    memory_limit = models.CharField(max_length=4, choices=MemoryLimit, default=MemoryLimit.ONE)
    expires_after_minutes = models.PositiveIntegerField(
        default=DEFAULT_EXPIRY_MINUTES,
        validators=(MinValueValidator(1), MaxValueValidator(MAX_EXPIRY_MINUTES)),
        help_text="Minutes without use after which variables and processes are lost.",
    )
    created_at = models.DateTimeField()
    last_active_at = models.DateTimeField()

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(fields=("project", "-id"), name="container_project"),
            models.Index(fields=("last_active_at",), name="container_activity"),
        )

    def __str__(self) -> str:
        return self.uid

    @property
    def expires_after(self) -> timedelta:
        """Time without use after which the container expires."""
        return timedelta(minutes=self.expires_after_minutes)


class ContainerFile(models.Model):
    """File in a container. The storage has the bytes, which an upload and other containers may share; the sandbox gets a copy."""

    uid = models.CharField("id", max_length=64, unique=True)
    container = models.ForeignKey(Container, on_delete=models.CASCADE, related_name="files", db_index=False)
    path = models.CharField(max_length=512, help_text="Path in the container, such as /mnt/data/plot.png.")
    bytes = models.BigIntegerField("size", help_text="Bytes.")
    source = models.CharField(max_length=12, choices=FileSource)
    created_at = models.DateTimeField()
    storage_name = models.CharField("name in the storage", max_length=200, editable=False)

    class Meta:
        ordering = ("-id",)
        verbose_name = "container file"
        indexes = (models.Index(fields=("storage_name",), name="container_file_storage"),)
        constraints = (models.UniqueConstraint(fields=("container", "path"), name="container_file_path"),)

    def __str__(self) -> str:
        return self.uid

    @property
    def filename(self) -> str:
        """Last part of the path."""
        return self.path.rpartition("/")[2]
