"""Django admin. Importing the package registers the pages, as the autodiscovery of Django expects."""

from __future__ import annotations

from responses_app.admin import container_admin, file_admin, registrations, vector_store_admin

__all__ = ["container_admin", "file_admin", "registrations", "vector_store_admin"]
