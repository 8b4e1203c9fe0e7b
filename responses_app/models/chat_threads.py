"""Choices of a person for the chat: title, pin and shared link of a thread, and presets of instructions."""

from __future__ import annotations

from django.conf import settings
from django.db import models

# Metadata key of a thread that started by editing or regenerating a first message: the id of the original first response.
BRANCH = "branch_of"
MAX_THREAD_TITLE_CHARS = 200
MAX_PRESET_NAME_CHARS = 60


class ChatThread(models.Model):
    """Choices of `user` for the chat thread whose first response is `thread`; no row without choices.

    A link with `share_key` shows the thread up to the response `shared_uid` to everyone. An empty `share_key` allows no link.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    project = models.CharField(max_length=100)
    thread = models.CharField(max_length=64, db_index=True)
    title = models.CharField(max_length=MAX_THREAD_TITLE_CHARS, blank=True, default="")
    pinned_at = models.DateTimeField(null=True)
    share_key = models.CharField(max_length=32, blank=True, default="")
    shared_uid = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        ordering = ("-id",)
        constraints = (models.UniqueConstraint(fields=("user", "thread"), name="chat_thread_once"),)

    def __str__(self) -> str:
        return self.title or self.thread


class ChatPreset(models.Model):
    """Instructions that a person has saved under a name for the chat."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=MAX_PRESET_NAME_CHARS)
    instructions = models.TextField(blank=True, default="")

    class Meta:
        ordering = ("name",)
        constraints = (models.UniqueConstraint(fields=("user", "name"), name="chat_preset_once"),)

    def __str__(self) -> str:
        return self.name
