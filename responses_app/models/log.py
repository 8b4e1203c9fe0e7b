"""Event log of a response, and the request of the response."""

from __future__ import annotations

from django.db import models

from responses_app.models.responses import Response


class Event(models.Model):
    """Row of a log not archived yet: an event, or the consecutive events of an append, compressed by `store.log.rows.event_codec`.

    `data` is the JSON of an event as sent to clients, without the `obfuscation` field. It is a line break where `packed` has the
    content. `type` is empty where `packed` has the types too.
    """

    # No constraint in the database: checking the response costs as much as the insert itself, once per event. Only the log writer
    # inserts rows, after the response; `store.content.deletion` deletes both.
    response = models.ForeignKey(Response, on_delete=models.CASCADE, related_name="events", db_index=False, db_constraint=False)
    number = models.IntegerField(help_text="The number of the first event of the row.")
    type = models.CharField(max_length=64)
    data = models.TextField()
    packed = models.BinaryField(null=True)
    ms = models.IntegerField("time", default=0, db_default=0, help_text="Milliseconds since the response was created.")
    tokens = models.BinaryField(null=True, help_text="The tokens generated since the event before; a resumed run replays them.")
    events = models.SmallIntegerField(null=True, help_text="Number of events of the row, if there are several.")

    # The constraint `event_number` in the database. A trigger, created by the first migration, rejects gaps in the numbers.
    pk = models.CompositePrimaryKey("response_id", "number")

    class Meta:
        ordering = ("response_id", "number")

    def __str__(self) -> str:
        return f"{self.number} {self.type}"


class LogPage(models.Model):
    """Compressed part of an archived log: the events `first` to `last`, encoded by `store.log.page_codec`.

    The last event of a long log has a page of its own. The table has partitions by response (`store.log.rows.partitions`).
    """

    # Not deleted with the response: where all responses of a partition are deleted, the partition is dropped.
    # `store.content.deletion` deletes the pages of a single response.
    response = models.ForeignKey(
        Response, on_delete=models.DO_NOTHING, related_name="pages", db_index=False, db_constraint=False
    )
    first = models.IntegerField()
    last = models.IntegerField()
    data = models.BinaryField()

    pk = models.CompositePrimaryKey("response_id", "first")

    class Meta:
        ordering = ("response_id", "first")

    def __str__(self) -> str:
        return f"{self.first} to {self.last}"


class StoredRequest(models.Model):
    """Request of a response, to resume the run after a failure: the validated request as JSON, and the rendered prompt."""

    response = models.OneToOneField(Response, on_delete=models.CASCADE, primary_key=True, related_name="stored_request")
    create_request = models.TextField(help_text="JSON, without the input, which is in the items.")
    prompt_tokens = models.BinaryField(
        help_text="Token ids, four bytes each, little-endian; without the first `shared_tokens`, which are those of `base`."
    )
    # Set for some long prompts when the log is archived (`store.log.rows.shared_prompts`). No foreign key: a trigger keeps prompts
    # whole when their base is deleted.
    base = models.BigIntegerField(null=True, help_text="Key of an earlier response whose prompt begins with the same tokens.")
    shared_tokens = models.IntegerField(
        null=True, help_text="Tokens at the beginning that the prompt shares with that of `base`."
    )
    opening = models.BigIntegerField(null=True, help_text="Hash of the first tokens of a long prompt.")

    class Meta:
        indexes = (
            models.Index(fields=("base",), name="request_base", condition=models.Q(base__isnull=False)),
            models.Index(fields=("opening", "-response"), name="request_opening", condition=models.Q(opening__isnull=False)),
        )

    def __str__(self) -> str:
        return f"request of {self.response_id}"


class RoundPrompt(models.Model):
    """Prompt of a round of a response with several rounds, saved when the log is archived (`store.log.rows.round_prompts`)."""

    response = models.ForeignKey(Response, on_delete=models.CASCADE, related_name="round_prompts", db_index=False)
    number = models.SmallIntegerField()
    shared_tokens = models.IntegerField(
        help_text="Tokens at the beginning that the prompt shares with the prompt of the round before, or of the stored request."
    )
    prompt_tokens = models.BinaryField(help_text="The other token ids, four bytes each, little-endian.")
    input_tokens = models.IntegerField(null=True, help_text="Tokens as the engine counted them; empty for the last round.")
    cached_tokens = models.IntegerField(null=True)

    pk = models.CompositePrimaryKey("response_id", "number")

    class Meta:
        ordering = ("response_id", "number")

    def __str__(self) -> str:
        return f"round {self.number}"
