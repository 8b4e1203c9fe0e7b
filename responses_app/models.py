"""What is kept: keys, responses, their items, and the log of events that everything else is a projection of."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Any, Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex, OpClass
from django.contrib.postgres.search import SearchVector, SearchVectorField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Func, Value
from django.db.models.functions import Left, Replace

from responses_app.keyring import secret_keys

SECRET_BYTES = 32
PREFIX_LENGTH = 10
# The name of the constraint that keeps a second response off a conversation.
LOCK = "conversation_lock"
# What a search by words finds an item by: so much of its beginning, as all of a long one would cost milliseconds when it is kept, with
# JSON's line feeds and tabs as the blanks that they are.
INDEXED = 8_000
_BODY_WORDS = SearchVector(
    Replace(Replace(Left("body", INDEXED), Value("\\n"), Value(" ")), Value("\\t"), Value(" ")), config="simple"
)
# Begins the word that every item has for its project. No word of a text has a blank, so that none can be mistaken for it.
PROJECT_WORD = "project "
_PROJECT_WORDS = Func(
    Value(PROJECT_WORD), F("project"), arg_joiner=" || ", template="array_to_tsvector(ARRAY[%(expressions)s])"
)
# The project is among the words, so that a search in one project does not read what others have said. Arguments in the order of
# the alphabet, as in a migration: Django compares them in the order in which they are given.
WORDS = Func(_PROJECT_WORDS, _BODY_WORDS, arg_joiner=" || ", output_field=SearchVectorField(), template="(%(expressions)s)")
MOST_REQUESTS = 100_000
MOST_AT_A_TIME = 10_000


class ApiKey(models.Model):
    """A bearer key. Keys of one project see the same responses; nobody else does (checklist 13)."""

    name = models.CharField(max_length=100)
    project = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16, editable=False, help_text="The first characters of the key.")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    revoked_at = models.DateTimeField(null=True, blank=True, help_text="The key is refused from this time on.")
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False, help_text="To the minute.")
    requests_per_minute = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=(MinValueValidator(1), MaxValueValidator(MOST_REQUESTS)),
        help_text="Leave blank for no limit.",
    )
    at_a_time = models.PositiveIntegerField(
        "concurrent responses",
        null=True,
        blank=True,
        validators=(MinValueValidator(1), MaxValueValidator(MOST_AT_A_TIME)),
        help_text="Responses that have not ended, in all processes. Leave blank for no limit.",
    )
    allowed_models = ArrayField(
        models.CharField(max_length=200), default=list, db_default=[], blank=True, help_text="Leave blank to allow all models."
    )
    spent_until = models.DateTimeField(
        null=True, editable=False, help_text="When its minute is full again: later by a share of a minute for each request."
    )

    class Meta:
        verbose_name = "API key"

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def limits(self) -> list[str]:
        """Its limits in words; empty if it has none."""
        words = []
        if self.requests_per_minute is not None:
            words.append(f"{self.requests_per_minute} per minute")
        if self.at_a_time is not None:
            words.append(f"{self.at_a_time} concurrent")
        return words + self.allowed_models

    @staticmethod
    def hashes(secret: str) -> list[str]:
        """Hash a key with SECRET_KEY and then with the older ones. Keys have 256 random bits, so no slow hash is needed."""
        return [hmac.new(key.encode(), secret.encode(), hashlib.sha256).hexdigest() for key in secret_keys()]

    @classmethod
    def hash(cls, secret: str) -> str:
        """Hex HMAC of a key."""
        return cls.hashes(secret)[0]

    @classmethod
    def make(cls, name: str, project: str | None = None, secret: str | None = None, **limits: Any) -> tuple[Self, str]:
        """A new key and its secret, which is shown this once. The project is the name unless given."""
        secret = secret or f"sk-{secrets.token_urlsafe(SECRET_BYTES)}"
        told = {"name": name, "project": project or name, "prefix": secret[:PREFIX_LENGTH], "digest": cls.hash(secret)}
        return cls.objects.create(**told, **limits), secret

    @classmethod
    def find(cls, secret: str) -> Self | None:
        """The live key with this secret, or None. One that was hashed with an older SECRET_KEY is hashed anew."""
        digests = cls.hashes(secret)
        found = {key.digest: key for key in cls.objects.filter(digest__in=digests)}
        key = next((found[digest] for digest in digests if digest in found), None)
        if key is None or key.revoked_at is not None:
            return None
        if key.digest != digests[0]:
            cls.objects.filter(pk=key.pk).update(digest=digests[0])
            key.digest = digests[0]
        return key

    @classmethod
    def known(cls, secret: str) -> bool:
        """Whether there is a row for this secret, revoked or not."""
        return cls.objects.filter(digest__in=cls.hashes(secret)).exists()


class Slot(models.Model):
    """A response under way that no row of its own tells of, of a key that may have so many at a time. It counts while its process lives."""

    key = models.ForeignKey(ApiKey, on_delete=models.CASCADE, related_name="slots")
    # No foreign key, as in `Lease`.
    worker = models.UUIDField()

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.key_id} in {self.worker}"


class Attempt(models.Model):
    """An attempt at a password that was not right, as far as is known. The account is a hash, as people type passwords there."""

    account = models.CharField(max_length=64)
    address = models.CharField(max_length=64)
    at = models.DateTimeField()

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(fields=("account", "at"), name="attempt_account"),
            models.Index(fields=("address", "at"), name="attempt_address"),
        )

    def __str__(self) -> str:
        return f"from {self.address}"


class Membership(models.Model):
    """That a person belongs to a project, and so sees its responses and makes its keys. Superusers belong to all of them."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    project = models.CharField(max_length=100)

    class Meta:
        ordering = ("project", "id")
        constraints = (models.UniqueConstraint(fields=("user", "project"), name="membership_once"),)

    def __str__(self) -> str:
        return f"{self.user} in {self.project}"


class Status(models.TextChoices):
    """Where a response is in its life (responses-api.md §1.3)."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress", "In progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Conversation(models.Model):
    """A thread of items that responses and clients add to."""

    uid = models.CharField("id", max_length=64, unique=True)
    project = models.CharField(max_length=100)
    metadata = models.TextField(default="{}", help_text="JSON, as text for the same reason as the body of an item.")
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return self.uid


class Detail(models.IntegerChoices):
    """How much of a log is kept, and in which form."""

    ROWS = 0, "events"
    PAGES = 1, "pages"
    OUTLINE = 2, "pages without deltas"


class Response(models.Model):
    """One stored response: what lists and filters need. Its body is in its log, its items in `Item`.

    `history` is the materialised chain (responses-api.md §3.1): the primary keys of all items before this response's own
    input, oldest first, so that a continuation reads any chain in one query. `thread` is the uid of the chain's first response.
    """

    uid = models.CharField("id", max_length=64, unique=True)
    request_id = models.CharField(
        "request id", max_length=64, blank=True, default="", db_default="", help_text="The x-request-id header of its request."
    )
    project = models.CharField(max_length=100)
    key = models.ForeignKey(ApiKey, null=True, on_delete=models.SET_NULL)
    model = models.CharField(max_length=200)
    status = models.CharField(max_length=12, choices=Status, default=Status.IN_PROGRESS)
    background = models.BooleanField(
        default=False, help_text="Runs whether or not a client is connected, and can be cancelled."
    )
    streamed = models.BooleanField(default=False, help_text="Requested as a stream.")
    stored = models.BooleanField(default=True, help_text="If not, it is kept for a short time only, for polling.")
    thread = models.CharField(max_length=64, db_index=True)
    previous_uid = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001 - null is the API's value
    history = ArrayField(models.BigIntegerField(), default=list)
    conversation = models.ForeignKey(
        Conversation, null=True, blank=True, on_delete=models.SET_NULL, related_name="responses", db_index=False
    )
    metadata = models.JSONField(default=dict)
    error_code = models.CharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    input_tokens = models.IntegerField(null=True)
    cached_tokens = models.IntegerField(null=True)
    output_tokens = models.IntegerField(null=True)
    reasoning_tokens = models.IntegerField(null=True)
    first_ms = models.IntegerField("first token", null=True, help_text="Milliseconds to the first token.")
    tools = ArrayField(models.CharField(max_length=200), default=list, db_default=[], help_text="Tools that the model called.")
    detail = models.SmallIntegerField(
        "log", choices=Detail, default=Detail.ROWS, db_default=Detail.ROWS, help_text="How the events are stored."
    )

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(fields=("project", "-id"), name="response_project"),
            # What is to be sealed, thinned or erased next, the oldest first.
            models.Index(fields=("detail", "ended_at"), name="response_detail"),
            models.Index(fields=("model", "-id"), name="response_model"),
            models.Index(fields=("status", "-id"), name="response_status"),
            models.Index(fields=("ended_at",), name="response_temporary", condition=models.Q(stored=False)),
            models.Index(fields=("created_at",), name="response_time"),
            # Also by its beginning.
            models.Index(fields=("request_id",), name="response_request", opclasses=("varchar_pattern_ops",)),
            # What a key has under way, and what stands in a conversation: few of all.
            models.Index(fields=("key",), name="response_running", condition=models.Q(ended_at=None)),
            models.Index(fields=("conversation", "-id"), name="response_in", condition=models.Q(conversation__isnull=False)),
            # Of most responses there is nothing to enter here.
            GinIndex(fields=("tools",), name="response_tools", condition=~models.Q(tools=[])),
            GinIndex(OpClass("metadata", "jsonb_path_ops"), name="response_metadata", condition=~models.Q(metadata={})),
        )
        constraints = (
            # The lock of a conversation: one response at a time, in all processes (responses-api.md §3.3).
            models.UniqueConstraint(fields=("conversation",), name=LOCK, condition=models.Q(ended_at=None)),
        )

    def __str__(self) -> str:
        return self.uid


class Direction(models.TextChoices):
    """Whether an item was told to the model or said by it."""

    INPUT = "input"
    OUTPUT = "output"


class Item(models.Model):
    """One item, stored once, in its wire form. Later responses refer to it by primary key, so it outlives its response if they do."""

    uid = models.CharField("id", max_length=128, db_index=True)
    response = models.ForeignKey(Response, null=True, on_delete=models.SET_NULL, related_name="items")
    project = models.CharField(max_length=100)
    direction = models.CharField(max_length=6, choices=Direction)
    type = models.CharField(max_length=40)
    body = models.TextField(help_text="JSON; text keeps the order of keys and every character, which jsonb does not.")
    orphaned_at = models.DateTimeField(
        null=True, editable=False, help_text="When it was taken out of its last conversation and belonged to no response."
    )

    class Meta:
        ordering = ("-id",)
        # New ones are gathered before they are sorted in, but so few that nobody waits for long when that is done.
        indexes = (
            GinIndex(WORDS, name="item_words", fastupdate=True, gin_pending_list_limit=512),
            models.Index(fields=("orphaned_at",), name="item_orphans", condition=models.Q(orphaned_at__isnull=False)),
        )

    def __str__(self) -> str:
        return self.uid


class Image(models.Model):
    """A picture that an item names by its address, as it was when it was fetched. It goes with the item."""

    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="images")
    url = models.TextField()
    data = models.BinaryField()

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return self.url


class Entry(models.Model):
    """The place of an item in a conversation, by primary key. An item may have a place in several, and one at most in each."""

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="entries", db_index=False)
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="entries")
    uid = models.CharField("item id", max_length=128)

    class Meta:
        ordering = ("-id",)
        verbose_name = "conversation item"
        indexes = (models.Index(fields=("conversation", "id"), name="entry_place"),)
        constraints = (models.UniqueConstraint(fields=("conversation", "uid"), name="entry_item"),)

    def __str__(self) -> str:
        return self.uid


class Event(models.Model):
    """One event exactly as it was sent: `data` is the JSON of the wire, without obfuscation."""

    # No constraint in the database: its check of the response costs as much as the insert itself, once per event. Rows come from
    # the recorder alone, which has inserted the response before, and go with it in `store.content.deletion`.
    response = models.ForeignKey(Response, on_delete=models.CASCADE, related_name="events", db_index=False, db_constraint=False)
    number = models.IntegerField()
    type = models.CharField(max_length=64)
    data = models.TextField()
    ms = models.IntegerField("time", default=0, db_default=0, help_text="Milliseconds since the response was created.")
    tokens = models.BinaryField(
        null=True, help_text="The tokens heard since the event before: what a continued run begins with."
    )

    class Meta:
        ordering = ("-id",)
        # That no number is left out is a constraint too, as a trigger: see the migration that makes it.
        constraints = (models.UniqueConstraint(fields=("response", "number"), name="event_number"),)

    def __str__(self) -> str:
        return f"{self.number} {self.type}"


class Page(models.Model):
    """A part of a log that has ended: the events `first` to `last`, packed by `store.log.page_codec`.

    The last event has a page of its own.
    """

    response = models.ForeignKey(Response, on_delete=models.CASCADE, related_name="pages", db_index=False)
    first = models.IntegerField()
    last = models.IntegerField()
    data = models.BinaryField()

    class Meta:
        ordering = ("-id",)
        constraints = (models.UniqueConstraint(fields=("response", "first"), name="page_first"),)

    def __str__(self) -> str:
        return f"{self.first} to {self.last}"


class Prompt(models.Model):
    """What a response was asked, in the server's words and in the model's: the order as JSON, and the token ids."""

    response = models.OneToOneField(Response, on_delete=models.CASCADE, primary_key=True, related_name="prompt")
    order = models.TextField(help_text="JSON, without the input, which is in the items.")
    tokens = models.BinaryField(help_text="Token ids, four bytes each, little-endian.")

    def __str__(self) -> str:
        return f"{len(self.tokens) // 4} tokens"


class Worker(models.Model):
    """A process that runs responses. It writes the time here again and again; one that has stopped to do so is dead."""

    uid = models.UUIDField("id", primary_key=True)
    name = models.CharField(max_length=200)
    serves = ArrayField(models.CharField(max_length=200), default=list, help_text="The models that it serves.")
    started_at = models.DateTimeField()
    beat_at = models.DateTimeField()

    class Meta:
        ordering = ("-started_at",)

    def __str__(self) -> str:
        return self.name


class Lease(models.Model):
    """Who runs a response that has not ended; gone when it has. `epoch` rises with every owner: an old one finds itself replaced."""

    response = models.OneToOneField(Response, on_delete=models.CASCADE, primary_key=True, related_name="lease")
    # No foreign key: a lease outlives the row of a worker that is gone, which is just what tells that it is free.
    worker = models.UUIDField(null=True, db_index=True)
    epoch = models.IntegerField(default=1)
    model = models.CharField(max_length=200)
    waiting = models.BooleanField(default=False, help_text="It has not begun, and does when a process has room for it.")
    cancelled = models.BooleanField(default=False, help_text="Whoever runs it ends it.")
    priority = models.IntegerField(default=0)
    reached = models.IntegerField(default=-1, help_text="The last number of the log when it changed hands last.")
    stuck = models.IntegerField(default=0, help_text="How often it has changed hands in a row without a new event.")

    class Meta:
        ordering = ("-response",)

    def __str__(self) -> str:
        return f"{self.response_id} by {self.worker}, {self.epoch}"
