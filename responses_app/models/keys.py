"""API keys and the limits of API keys."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, Self

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone

from responses_app.installation.keyring import secret_keys
from responses_app.models.limits.fields import CountedLimit, UsageLimits
from responses_app.models.limits.numbers import LimitField
from responses_app.models.limits.projects import Project

SECRET_BYTES = 32
PREFIX_LENGTH = 10
MAX_REQUESTS_PER_MINUTE = 100_000
MAX_CONCURRENT = 10_000
# The API's smallest `max_output_tokens`.
MIN_OUTPUT_TOKENS, MAX_OUTPUT_TOKENS = 16, 10_000_000
MAX_NAME = 100
MAX_RUN_SECONDS = 7 * 24 * 3600


class ApiKey(UsageLimits):
    """API key, sent as a bearer token. A key sees the responses of a single project."""

    name = models.CharField(max_length=MAX_NAME)
    project = models.CharField(max_length=MAX_NAME)
    prefix = models.CharField(max_length=16, editable=False, help_text="The first characters of the key.")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="api_keys",
        help_text="The person who created the key on a page.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    revoked_at = models.DateTimeField(null=True, blank=True, help_text="The key is refused from this time on.")
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False, help_text="To the minute.")
    requests_per_minute = LimitField(
        null=True,
        blank=True,
        validators=(MinValueValidator(1), MaxValueValidator(MAX_REQUESTS_PER_MINUTE)),
        help_text="Leave blank for no limit.",
    )
    max_concurrent = LimitField(
        "concurrent responses",
        null=True,
        blank=True,
        validators=(MinValueValidator(1), MaxValueValidator(MAX_CONCURRENT)),
        help_text="Responses that have not ended, in all processes. Leave blank for no limit.",
    )
    default_output_tokens = LimitField(
        null=True,
        blank=True,
        validators=(MinValueValidator(MIN_OUTPUT_TOKENS), MaxValueValidator(MAX_OUTPUT_TOKENS)),
        help_text="For requests that name no number. Leave blank for the default of the model.",
    )
    max_output_tokens = LimitField(
        null=True,
        blank=True,
        validators=(MinValueValidator(MIN_OUTPUT_TOKENS), MaxValueValidator(MAX_OUTPUT_TOKENS)),
        help_text="For each response, and for requests that name no number. Leave blank for no limit.",
    )
    max_run_seconds = LimitField(
        "running time",
        null=True,
        blank=True,
        validators=(MinValueValidator(1), MaxValueValidator(MAX_RUN_SECONDS)),
        help_text="Seconds for each response. Leave blank for no limit.",
    )
    expires_at = models.DateTimeField(
        "expiry date", null=True, blank=True, help_text="The key is refused from this time on. Leave blank for never."
    )
    # Secret that the last rotation replaced, which is valid until then.
    old_digest = models.CharField(max_length=64, blank=True, default="", db_default="", editable=False, db_index=True)
    old_valid_until = models.DateTimeField(
        null=True, editable=False, help_text="The secret before the rotation is refused then."
    )
    # State of the token bucket (GCRA): each request moves this time forward by 60 s / requests_per_minute.
    rate_limit_until = models.DateTimeField(
        null=True, editable=False, help_text="When all requests of a minute are available again."
    )

    # Primary key of the person of a browser key, which has no row.
    user_pk: int | None = None
    # Limits of the project, loaded with the key; None without such limits.
    project_limits: Project | None = None
    # Whether `find` found the key by the secret before the rotation.
    has_old_secret = False

    class Meta:
        verbose_name = "API key"

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def limited_name(self) -> tuple[str, str]:
        """The scope and the primary key."""
        return "key", str(self.pk)

    @property
    def all_counted_limits(self) -> Sequence[CountedLimit]:
        """The counted limits of the key and of its project. A browser key has those of the project alone."""
        of_key = () if self.pk is None else self.counted_limits
        return of_key if self.project_limits is None else [*of_key, *self.project_limits.counted_limits]

    def refusal(self, allowed: Literal["allowed_models", "allowed_tools"], name: str) -> str | None:
        """Return the subject of a refusal if the list of the key or of its project is without the model or tool `name`, else None."""
        subjects = ((self, "This key"), (self.project_limits, f"The project '{self.project}'"))
        lists = [(getattr(limits, allowed), subject) for limits, subject in subjects if limits is not None]
        return next((subject for names, subject in lists if names and name not in names), None)

    @property
    def limits(self) -> list[str]:
        """Describe the limits for a page, without the end of the key; empty if the key has none."""
        shown = {
            "requests_per_minute": "{} per minute",
            "max_concurrent": "{} concurrent",
            "default_output_tokens": "{:,} output tokens by default",
            "max_output_tokens": "{:,} output tokens",
            "max_run_seconds": "{} s",
            "tokens_per_minute": "{:,} tokens per minute",
            "tokens_per_day": "{:,} tokens per day",
            "spend_per_month": f"{{}} {settings.RESPONSES_CURRENCY} per month",
            "tool_calls_per_day": "{} tool calls per day",
            "retention_days": "kept {} days",
        }
        words = [text.format(value) for name, text in shown.items() if (value := getattr(self, name)) is not None]
        return words + self.allowed_models + [f"tool {name}" for name in self.allowed_tools]

    @staticmethod
    def hashes(secret: str) -> list[str]:
        """Hash a key with SECRET_KEY and then with each older key. Keys have 256 random bits, so no slow hash is needed."""
        return [hmac.digest(key.encode(), secret.encode(), "sha256").hex() for key in secret_keys()]

    @classmethod
    def hash(cls, secret: str) -> str:
        """Hash a key with SECRET_KEY: an HMAC-SHA256 in hexadecimal."""
        return cls.hashes(secret)[0]

    @classmethod
    def make(cls, name: str, project: str | None = None, secret: str | None = None, **limits: Any) -> tuple[Self, str]:
        """Create a key. Return the row and the secret; the secret is not stored. `project` defaults to `name`."""
        secret = secret or f"sk-{secrets.token_urlsafe(SECRET_BYTES)}"
        fields = {"name": name, "project": project or name, "prefix": secret[:PREFIX_LENGTH], "digest": cls.hash(secret)}
        return cls.objects.create(**fields, **limits), secret

    @classmethod
    def of_project(cls, project: str) -> Self:
        """Return a key without a row, with the limits of the project alone, as that of a person on a page."""
        key = cls(project=project)
        key.project_limits = Project.objects.filter(name=project).first()
        return key

    @classmethod
    def find(cls, secret: str) -> Self | None:
        """Find the key for `secret`; None if unknown or revoked. Replaces a digest made with an older SECRET_KEY."""
        digests = cls.hashes(secret)
        keys = {key.digest: key for key in cls.objects.filter(digest__in=digests)}
        key = next((keys[digest] for digest in digests if digest in keys), None)
        if key is None:
            key = cls.objects.filter(old_digest__in=digests, revoked_at=None).first()
            if key is not None:
                key.has_old_secret = True
            return key
        if key.revoked_at is not None:
            return None
        if key.digest != digests[0]:
            cls.objects.filter(pk=key.pk).update(digest=digests[0])
            key.digest = digests[0]
        return key

    @property
    def valid_until(self) -> datetime | None:
        """The time from which on the secret that `find` was given is refused; None for never."""
        times = [self.expires_at, self.old_valid_until if self.has_old_secret else None]
        return min((time for time in times if time is not None), default=None)

    @property
    def keeps_old_secret(self) -> bool:
        """Return whether the secret before the last rotation is still valid."""
        return self.old_valid_until is not None and timezone.now() < self.old_valid_until

    def rotate(self, old_valid_until: datetime) -> str:
        """Replace the secret, and return the new one. The old secret stays valid until `old_valid_until`."""
        secret = f"sk-{secrets.token_urlsafe(SECRET_BYTES)}"
        self.old_digest, self.old_valid_until = self.digest, old_valid_until
        self.digest, self.prefix = self.hash(secret), secret[:PREFIX_LENGTH]
        self.save(update_fields=["old_digest", "old_valid_until", "digest", "prefix"])
        return secret

    @classmethod
    def is_stored(cls, secret: str) -> bool:
        """Return whether `secret` belongs to a stored key, revoked or not."""
        digests = cls.hashes(secret)
        return cls.objects.filter(models.Q(digest__in=digests) | models.Q(old_digest__in=digests)).exists()

    @classmethod
    def has_hash_of_another_secret_key(cls, secret: str) -> bool:
        """Return whether a random `secret` was also stored with another SECRET_KEY, by its first characters."""
        digests = cls.hashes(secret)
        alike = cls.objects.filter(prefix=secret[:PREFIX_LENGTH], revoked_at=None)
        return alike.exclude(digest__in=digests).exclude(old_digest__in=digests).exists()


class ConcurrencySlot(models.Model):
    """Running response without a row in `Response`, of a key with `max_concurrent`. Counts while the worker is alive."""

    key = models.ForeignKey(ApiKey, on_delete=models.CASCADE, related_name="slots")
    # No foreign key, for the reason given at `Lease.worker`.
    worker = models.UUIDField()

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.key_id} in {self.worker}"
