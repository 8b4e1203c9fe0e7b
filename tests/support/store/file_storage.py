"""Storage of files in a folder of a test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings


def file_storage_settings(folder: Path) -> Mapping[str, Any]:
    """Return the settings that store files in `folder/files` and collect uploads in `folder/uploads`."""
    files = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": folder / "files"}}
    return {"STORAGES": {**settings.STORAGES, "files": files}, "RESPONSES_UPLOAD_DIR": folder / "uploads"}
