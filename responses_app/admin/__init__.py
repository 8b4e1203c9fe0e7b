"""Django admin. Importing the package registers the pages, as the autodiscovery of Django expects."""

from __future__ import annotations

from responses_app.admin import audit, registrations

__all__ = ["audit", "registrations"]
