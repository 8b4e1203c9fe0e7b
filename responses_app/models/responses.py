"""Responses, items, and images of items."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex, HashIndex, OpClass
from django.contrib.postgres.search import SearchVector, SearchVectorField
from django.db import models
from django.db.models import CharField, F, Func, Value
from django.db.models.functions import Left, Replace

from responses_app.models.conversations import Conversation
from responses_app.models.keys import ApiKey

# Name of the constraint that allows one running response per conversation.
CONVERSATION_LOCK = "conversation_lock"
# Constraint that a response violates if its conversation was deleted after it was read.
CONVERSATION_DELETED = "conversation_deleted"
# Constraint that a response violates if the previous response was deleted after it was read.
PREVIOUS_DELETED = "previous_response_deleted"
# Characters of `request_id` in its index: these have the milliseconds of the request and 12 random bits, so hardly two are equal.
INDEXED_ID_CHARS = 20
# Full-text search indexes only the beginning of an item's body: a long body would cost milliseconds per insert.
MAX_INDEXED_CHARS = 8_000
# Escaped line feeds and tabs of the JSON separate words, so they are replaced by blanks. So are the ids of this server: a search finds
# an id in its column, and as a word of its own each id would take 70 bytes of the index.
_WITHOUT_IDS = Func(
    Left("body", MAX_INDEXED_CHARS),
    Value(r"_[0-9a-f]{48}"),
    Value(" "),
    Value("g"),
    function="regexp_replace",
    output_field=CharField(),
)
_BODY_VECTOR = SearchVector(Replace(Replace(_WITHOUT_IDS, Value("\\n"), Value(" ")), Value("\\t"), Value(" ")), config="simple")
# Prefix of the search term that stands for an item's project. Terms of a text contain no blank, so no text can imitate it.
PROJECT_TERM_PREFIX = "project "
_PROJECT_VECTOR = Func(
    Value(PROJECT_TERM_PREFIX), F("project"), arg_joiner=" || ", template="array_to_tsvector(ARRAY[%(expressions)s])"
)
# The project is part of the search vector, so that a search in one project reads no items of others.
# Keyword arguments in alphabetical order, as in a migration: Django compares them in order.
SEARCH_VECTOR = Func(
    _PROJECT_VECTOR, _BODY_VECTOR, arg_joiner=" || ", output_field=SearchVectorField(), template="(%(expressions)s)"
)


class Status(models.TextChoices):
    """Status of a response, as in the OpenAI API reference."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress", "In progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ApiFormat(models.TextChoices):
    """API format of the request of a response. The log has the form of Responses in any format."""

    RESPONSES = "", "Responses"
    CHAT_COMPLETIONS = "chat_completions", "Chat Completions"
    MESSAGES = "messages", "Messages"


class LogForm(models.IntegerChoices):
    """Storage form of a response's events."""

    ROWS = 0, "events"
    PAGES = 1, "pages"
    WITHOUT_DELTAS = 2, "pages without deltas"


class Response(models.Model):
    """Stored response: the columns for lists and filters. The body is in the event log, the items are in `Item`.

    `history` holds the primary keys of all items before this response's own input, oldest first. A continuation reads a chain
    of any length in one query. `thread` is the uid of the chain's first response.
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
    thread = models.CharField(max_length=64)
    previous_uid = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001 - null is the API's value
    rerun_of = models.CharField(
        max_length=64, blank=True, default="", db_default="", help_text="The id of the response whose request was run again."
    )
    api_format = models.CharField(
        "API format",
        max_length=20,
        choices=ApiFormat,
        blank=True,
        default="",
        db_default="",
        help_text="The API of its request.",
    )
    fingerprint = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="Hash of a request that may be sent again.",
    )
    # No constraint: it would lock the user's row in each insert.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        db_constraint=False,
        db_index=False,
        related_name="+",
        help_text="The person who sent the request from a page.",
    )
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
    time_to_first_token_ms = models.IntegerField("first token", null=True, help_text="Milliseconds to the first token.")
    generation_ms = models.IntegerField(
        "generation", null=True, help_text="Milliseconds in which the output tokens were generated, without tools and prompts."
    )
    tools = ArrayField(models.CharField(max_length=200), default=list, db_default=[], help_text="Tools that the model called.")
    takeovers = ArrayField(
        models.IntegerField(),
        null=True,
        blank=True,
        help_text="The number of the last event before each take-over by another process. Empty for nearly all responses.",
    )
    log_form = models.SmallIntegerField(
        "log", choices=LogForm, default=LogForm.ROWS, db_default=LogForm.ROWS, help_text="How the events are stored."
    )

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(fields=("project", "-id"), name="response_project"),
            # Maintenance archives, prunes or erases the oldest responses first.
            models.Index(fields=("log_form", "ended_at"), name="response_log_form"),
            # List of responses with the filter of a model and none of a project.
            models.Index(fields=("model", "-id"), name="response_model"),
            # Maintenance erases responses that are not stored some minutes after the end.
            models.Index(fields=("ended_at",), name="response_temporary", condition=models.Q(stored=False)),
            # Filters by time, and the figures of the overview.
            models.Index(fields=("created_at",), name="response_created"),
            # Looked up by equality alone. A hash takes a fifth of the space of the text.
            HashIndex(fields=("thread",), name="response_thread"),
            # text_pattern_ops: also searched by prefix.
            models.Index(OpClass(Left("request_id", INDEXED_ID_CHARS), "text_pattern_ops"), name="response_request"),
            # Partial indexes: most responses are completed, few are running, and few belong to a conversation.
            models.Index(fields=("status", "-id"), name="response_status", condition=~models.Q(status=Status.COMPLETED)),
            models.Index(fields=("key",), name="response_running", condition=models.Q(ended_at=None)),
            models.Index(
                fields=("conversation", "-id"), name="response_conversation", condition=models.Q(conversation__isnull=False)
            ),
            models.Index(fields=("user", "-id"), name="response_user", condition=models.Q(user__isnull=False)),
            # Partial indexes: most responses are no reruns, and have no tools and no metadata.
            models.Index(fields=("rerun_of",), name="response_rerun", condition=~models.Q(rerun_of="")),
            models.Index(fields=("fingerprint", "-id"), name="response_fingerprint", condition=~models.Q(fingerprint="")),
            models.Index(fields=("project", "api_format", "-id"), name="response_format", condition=~models.Q(api_format="")),
            GinIndex(fields=("tools",), name="response_tools", condition=~models.Q(tools=[])),
            GinIndex(OpClass("metadata", "jsonb_path_ops"), name="response_metadata", condition=~models.Q(metadata={})),
        )
        constraints = (
            # Lock of a conversation: one running response at a time, in all processes.
            models.UniqueConstraint(fields=("conversation",), name=CONVERSATION_LOCK, condition=models.Q(ended_at=None)),
        )

    def __str__(self) -> str:
        return self.uid


class Direction(models.TextChoices):
    """Direction of an item: part of a request, or generated by the model."""

    INPUT = "input"
    OUTPUT = "output"


class Item(models.Model):
    """Item of a response or conversation in wire form, stored once.

    Later responses refer to the item by primary key, so an item may outlive its response.
    """

    uid = models.CharField("id", max_length=128)
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
        indexes = (
            # New rows collect in the pending list, in kB. Maintenance merges the list; a commit merges it only when it is full.
            GinIndex(SEARCH_VECTOR, name="item_search", fastupdate=True, gin_pending_list_limit=4096),
            HashIndex(fields=("uid",), name="item_uid"),
            models.Index(fields=("orphaned_at",), name="item_orphans", condition=models.Q(orphaned_at__isnull=False)),
        )

    def __str__(self) -> str:
        return self.uid


class Image(models.Model):
    """Image or text of a file that an item names: the bytes at the time of the request. Deleted with the item.

    `url` is the URL of the image, the id of the uploaded image, or `text:` and the place of the file in the item.
    """

    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="images")
    url = models.TextField()
    data = models.BinaryField()

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return self.url
