"""Model of the accounts: AUTH_USER_MODEL, which is a subclass of AbstractUser. Import this module after the models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model

if TYPE_CHECKING:
    from django.contrib.auth.models import User
else:
    User = get_user_model()

__all__ = ["User"]
