"""Storage of files: a folder, or a bucket of S3 that RESPONSES_FILE_STORAGE names."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from django.core.exceptions import ImproperlyConfigured

from responses_app.installation.addresses import check_http_url
from responses_app.utils.json_setting import split_url

# Query parameters of the URL, which are options of the same names of the back end `S3Storage` of django-storages.
OPTIONS = frozenset({"endpoint_url", "region_name", "addressing_style", "signature_version", "access_key", "secret_key"})
FORMS = "RESPONSES_FILE_STORAGE must be like s3://bucket/prefix?region_name=eu-west-1 or file:///srv/files"
S3_COMMAND = "pip install 'django-storages[s3]'"
# Bytes of a file that are held in memory while the file is read; the rest is in a temporary file.
MAX_MEMORY_BYTES = 1024 * 1024


def file_storage(url: str, folder: Path) -> dict[str, Any]:
    """Build the entry of STORAGES for `s3://bucket/prefix?endpoint_url=…` or `file:///folder`; an empty URL stands for `folder`.

    Raises ImproperlyConfigured.
    """
    parts = split_url(url)
    if parts is None:
        raise ImproperlyConfigured(f"{FORMS}, but cannot be read as a URL")
    if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/"):
        url, folder = "", Path(unquote(parts.path))
    if not url:
        modes = {"file_permissions_mode": 0o600, "directory_permissions_mode": 0o700}
        return {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": folder, **modes}}
    options: dict[str, Any] = dict(parse_qsl(parts.query))
    unknown = sorted(set(options) - OPTIONS)
    if parts.scheme != "s3" or not parts.netloc or unknown:
        # The URL may contain a key, so the message does not repeat the URL.
        problem = f"the unknown parameter {unknown[0]!r}" if unknown else "another form"
        raise ImproperlyConfigured(f"{FORMS}, but has {problem}")
    check_http_url("RESPONSES_FILE_STORAGE: endpoint_url", options.get("endpoint_url", ""), "https://minio.example.com")
    options |= {"bucket_name": parts.netloc, "location": unquote(parts.path.strip("/"))}
    return {
        "BACKEND": "storages.backends.s3.S3Storage",
        "OPTIONS": {**options, "default_acl": None, "file_overwrite": False, "max_memory_size": MAX_MEMORY_BYTES},
    }


def check_package(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry of STORAGES. Raises ImproperlyConfigured if the package of the storage is not installed."""
    if find_spec(entry["BACKEND"].partition(".")[0]) is None:
        raise ImproperlyConfigured(f"RESPONSES_FILE_STORAGE names a bucket, which needs the extra s3: {S3_COMMAND}")
    return entry
