"""Vector stores, the files in stores, batches of files, and the chunks that a search reads."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models.signals import pre_delete
from django.dispatch import receiver

from responses_app.models.files import File

MAX_STORE_NAME_CHARS = 512


class RealField(models.FloatField):  # type: ignore[type-arg]
    """Number of 32 bits. pgvector converts an array of these numbers to a vector."""

    def db_type(self, connection: object) -> str:
        """Return the type of Postgres."""
        del connection
        return "real"


class StoreFileStatus(models.TextChoices):
    """Status of a file in a vector store, as in the OpenAI API reference."""

    IN_PROGRESS = "in_progress", "In progress"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"


class VectorStore(models.Model):
    """Vector store: a set of files that a search reads."""

    uid = models.CharField("id", max_length=64, unique=True)
    project = models.CharField(max_length=100)
    name = models.CharField(max_length=MAX_STORE_NAME_CHARS, blank=True, default="")
    description = models.TextField(blank=True, default="")
    metadata = models.TextField(default="{}", help_text="JSON, as text for the same reason as the body of an item.")
    text_config = models.CharField(
        "text search configuration", max_length=63, help_text="Configuration of Postgres for the words of the files."
    )
    expires_after_days = models.PositiveIntegerField(
        null=True, blank=True, help_text="Days after the last use until the store expires. Leave blank for never."
    )
    created_at = models.DateTimeField()
    last_active_at = models.DateTimeField()

    class Meta:
        ordering = ("-id",)
        verbose_name = "vector store"
        indexes = (models.Index(fields=("project", "-id"), name="vector_store_project"),)

    def __str__(self) -> str:
        return self.uid


class FileBatch(models.Model):
    """Files that were added to a vector store together."""

    uid = models.CharField("id", max_length=64, unique=True)
    store = models.ForeignKey(VectorStore, on_delete=models.CASCADE, related_name="batches")
    created_at = models.DateTimeField()
    cancelled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        verbose_name = "file batch"
        verbose_name_plural = "file batches"

    def __str__(self) -> str:
        return self.uid


class VectorStoreFile(models.Model):
    """File in a vector store, and the job of the ingestion. A job without a worker is due at `due_at`.

    `claim` is the id of the worker's attempt: a worker that was replaced cannot store its result.
    """

    store = models.ForeignKey(VectorStore, on_delete=models.CASCADE, related_name="store_files", db_index=False)
    file = models.ForeignKey(File, on_delete=models.CASCADE, related_name="store_files")
    batch = models.ForeignKey(FileBatch, on_delete=models.SET_NULL, null=True, related_name="store_files")
    status = models.CharField(max_length=12, choices=StoreFileStatus, default=StoreFileStatus.IN_PROGRESS)
    attributes = models.JSONField(default=dict)
    chunk_tokens = models.PositiveIntegerField(help_text="Tokens of a chunk, at most.")
    overlap_tokens = models.PositiveIntegerField(help_text="Tokens that a chunk shares with the next chunk.")
    usage_bytes = models.BigIntegerField(default=0, help_text="Bytes of the text and of the vectors of all chunks.")
    embedding_model = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="Model of the embeddings of the chunks. Empty without embeddings, or if an earlier version added the file.",
    )
    error_code = models.CharField(max_length=20, blank=True, default="")
    error_message = models.TextField(blank=True, default="")
    attempts = models.PositiveIntegerField(default=0)
    claim = models.UUIDField(null=True, editable=False)
    due_at = models.DateTimeField(help_text="Beginning of the next attempt, or the end of the present worker's lease.")
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("-id",)
        verbose_name = "file in a vector store"
        verbose_name_plural = "files in vector stores"
        indexes = (
            models.Index(fields=("due_at",), name="store_file_due", condition=models.Q(status="in_progress")),
            models.Index(fields=("store", "due_at"), name="store_file_queue", condition=models.Q(status="in_progress")),
            models.Index(
                fields=("due_at",),
                name="store_file_claimed",
                condition=models.Q(status="in_progress", claim__isnull=False),
            ),
            # Lists of the files of a store, in both orders.
            models.Index(fields=("store", "-id"), name="store_file_order"),
        )
        constraints = (models.UniqueConstraint(fields=("store", "file"), name="store_file_unique"),)

    def __str__(self) -> str:
        return f"{self.file_id} in {self.store_id}"


class IngestionTurn(models.Model):
    """Last claim of a project's files. Projects take turns, so that the files of one project do not delay those of others."""

    project = models.CharField(max_length=100, unique=True)
    claimed_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.project


class FileChunk(models.Model):
    """Chunk of a file's text. `search` contains a term for the store, so that a search reads no chunks of other stores."""

    store_file = models.ForeignKey(VectorStoreFile, on_delete=models.CASCADE, related_name="chunks", db_index=False)
    store = models.ForeignKey(VectorStore, on_delete=models.CASCADE, related_name="chunks")
    position = models.PositiveIntegerField(help_text="Number of the chunk in the file, from 0.")
    start = models.PositiveIntegerField(help_text="First character of the chunk in the text of the file, from 0.")
    tokens = models.PositiveIntegerField()
    text = models.TextField()
    search = SearchVectorField()
    embedding = ArrayField(RealField(), null=True)

    class Meta:
        ordering = ("store_file", "position")
        indexes = (GinIndex(fields=("search",), name="chunk_search", fastupdate=False),)
        constraints = (models.UniqueConstraint(fields=("store_file", "position"), name="chunk_unique"),)

    def __str__(self) -> str:
        return f"{self.store_file_id}, {self.position}"


@receiver(pre_delete, sender=VectorStore)
@receiver(pre_delete, sender=File)
def lock_store_files(instance: VectorStore | File, **_signal: object) -> None:
    """Lock the files of a store, or of all stores, before a deletion: a worker that stores chunks of these has the same lock."""
    rows = VectorStoreFile.objects.select_for_update().order_by("pk")
    rows = rows.filter(store=instance) if isinstance(instance, VectorStore) else rows.filter(file=instance)
    list(rows.values_list("pk", flat=True))
