"""Check of the expiry date in forms of API keys."""

from __future__ import annotations

from datetime import datetime, timedelta

from django import forms
from django.utils import timezone

PAST = "This time is in the past. To end the key now, revoke it."


class FutureExpiry(forms.ModelForm):  # type: ignore[type-arg]
    """Form of a key that refuses a new expiry date in the past. An unchanged one stays, so that an expired key can be renamed."""

    def clean_expires_at(self) -> datetime | None:
        """Return the expiry date. Forms show it without seconds."""
        value: datetime | None = self.cleaned_data["expires_at"]
        before: datetime | None = self.initial.get("expires_at")
        is_new = value is not None and (before is None or abs(value - before) >= timedelta(minutes=1))
        if value is not None and is_new and value <= timezone.now():
            raise forms.ValidationError(PAST)
        return value
