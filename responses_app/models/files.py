"""Uploaded files of the Files API."""

from __future__ import annotations

from django.db import models

MAX_FILENAME_CHARS = 255


class FilePurpose(models.TextChoices):
    """Purpose of a file, as in the OpenAI API reference."""

    ASSISTANTS = "assistants"
    BATCH = "batch"
    FINE_TUNE = "fine-tune"
    VISION = "vision"
    USER_DATA = "user_data", "User data"
    EVALS = "evals"


class FileStatus(models.TextChoices):
    """Status of a file, as in the OpenAI API reference."""

    UPLOADED = "uploaded"
    PROCESSED = "processed"
    ERROR = "error"


class StoredFile(models.Model):
    """Bytes in the storage, which count for the quota of a project. An upload and files of containers may share them."""

    name = models.CharField("name in the storage", max_length=200, primary_key=True)
    project = models.CharField(max_length=100)
    bytes = models.BigIntegerField("size", help_text="Bytes.")

    class Meta:
        verbose_name = "stored file"
        indexes = (models.Index(fields=("project",), include=("bytes",), name="stored_file_project"),)

    def __str__(self) -> str:
        return self.name


class File(models.Model):
    """Uploaded file: the fields of the API and the name in the storage. The storage has the bytes, the row is written after them."""

    uid = models.CharField("id", max_length=64, unique=True)
    project = models.CharField(max_length=100)
    filename = models.CharField(max_length=MAX_FILENAME_CHARS, help_text="As sent, without folders.")
    purpose = models.CharField(max_length=16, choices=FilePurpose)
    bytes = models.BigIntegerField("size", help_text="Bytes.")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True, help_text="The file is deleted after this time.")
    status = models.CharField(max_length=12, choices=FileStatus, default=FileStatus.PROCESSED)
    status_details = models.TextField(blank=True, default="", help_text="Reason of the status `error`.")
    storage_name = models.CharField("name in the storage", max_length=200, unique=True, editable=False)
    sha256 = models.CharField("SHA-256", max_length=64, editable=False)

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(fields=("project", "-id"), name="file_project"),
            models.Index(fields=("expires_at",), name="file_expiry", condition=models.Q(expires_at__isnull=False)),
        )

    def __str__(self) -> str:
        return self.uid
