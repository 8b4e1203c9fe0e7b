"""The setting of the storage of files."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from project.file_storage import check_package, file_storage

FOLDER = Path("/data/files")


def test_empty_setting_is_a_folder_for_the_owner_alone() -> None:
    options = file_storage("", FOLDER)["OPTIONS"]
    assert options == {"location": FOLDER, "file_permissions_mode": 0o600, "directory_permissions_mode": 0o700}


def test_url_names_a_folder_that_hosts_share() -> None:
    assert file_storage("file:///srv/shared%20files", FOLDER)["OPTIONS"]["location"] == Path("/srv/shared files")


def test_url_names_bucket_prefix_and_options() -> None:
    entry = file_storage("s3://bucket/a/b%20c?endpoint_url=https://s3.example.com&addressing_style=path", FOLDER)
    assert entry["BACKEND"] == "storages.backends.s3.S3Storage"
    expected_options = {
        "bucket_name": "bucket",
        "location": "a/b c",
        "endpoint_url": "https://s3.example.com",
        "addressing_style": "path",
    }
    assert {name: entry["OPTIONS"][name] for name in expected_options} == expected_options


def test_a_storage_whose_package_is_missing_is_named_with_the_command() -> None:
    entry = file_storage("", FOLDER)
    assert check_package(entry) == entry
    with pytest.raises(ImproperlyConfigured, match=r"needs the extra s3: pip install 'django-storages\[s3\]'"):
        check_package({"BACKEND": "no_such_package.backends.s3.S3Storage"})


@pytest.mark.parametrize(
    "url",
    [
        *("/files", "file://host/files", "gs://bucket", "s3:///prefix", "s3://bucket?secret=hidden-key"),
        *("s3://[bucket", "s3://bucket?endpoint_url=minio:9000&secret_key=hidden-key"),
    ],
)
def test_other_settings_are_refused_without_the_value(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="RESPONSES_FILE_STORAGE") as refused:
        file_storage(url, FOLDER)
    assert "hidden-key" not in str(refused.value)
