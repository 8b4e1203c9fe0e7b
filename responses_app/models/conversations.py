"""Conversations and the order of items in conversations."""

from __future__ import annotations

from django.db import models


class Conversation(models.Model):
    """Thread of items, extended by responses and by clients."""

    uid = models.CharField("id", max_length=64, unique=True)
    project = models.CharField(max_length=100)
    metadata = models.TextField(default="{}", help_text="JSON, as text for the same reason as the body of an item.")
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return self.uid


class ConversationItem(models.Model):
    """Position of an item in a conversation, ordered by primary key. An item has at most 1 position per conversation."""

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="conversation_items", db_index=False)
    item = models.ForeignKey("Item", on_delete=models.CASCADE, related_name="conversation_items")
    uid = models.CharField("item id", max_length=128)

    class Meta:
        ordering = ("-id",)
        verbose_name = "conversation item"
        indexes = (models.Index(fields=("conversation", "id"), name="conversation_item_order"),)
        constraints = (models.UniqueConstraint(fields=("conversation", "uid"), name="conversation_item_unique"),)

    def __str__(self) -> str:
        return self.uid
