"""The Django admin; importing the package registers its pages, as Django's autodiscovery expects."""

from __future__ import annotations

from responses_app.admin import registrations

__all__ = ["registrations"]
