"""Conversion of exceptions to API errors."""

from __future__ import annotations

import logging

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.db import InterfaceError, OperationalError
from django.http.request import UnreadablePostError

from responses_app.errors import (
    ApiError,
    DatabaseAway,
    DatabaseFull,
    InsufficientStorage,
    InternalError,
    InvalidRequest,
    PayloadTooLarge,
    ServiceUnavailable,
)
from responses_app.installation.data_dir import MANAGE
from responses_app.store.files.quota import ContainerQuotaExceeded, DiskFull, FileQuotaExceeded
from responses_app.store.files.storage import StorageUnavailable
from responses_app.store.storage_report.storage_state import is_disk_full

logger = logging.getLogger("responses.api")


def to_api_error(error: Exception, request_id: str, where: str) -> ApiError:
    """Convert an exception to an API error. Errors of the server are logged with `request_id` and `where`."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, FileQuotaExceeded):
        return InvalidRequest(str(error), param="file", code="file_quota_exceeded")
    if isinstance(error, ContainerQuotaExceeded):
        return InvalidRequest(str(error), code="container_quota_exceeded")
    if isinstance(error, DiskFull):
        return InsufficientStorage(str(error))
    if isinstance(error, StorageUnavailable):
        logger.error("%s storage of files: %s. `%s doctor` checks RESPONSES_FILE_STORAGE", request_id, error, MANAGE)
        return InsufficientStorage(error.refusal) if error.is_full else ServiceUnavailable(error.refusal)
    if isinstance(error, TooManyFieldsSent):
        return InvalidRequest(f"The query has more than {settings.DATA_UPLOAD_MAX_NUMBER_FIELDS} parameters.")
    if isinstance(error, RequestDataTooBig):
        return PayloadTooLarge("The body of your request is larger than 64 MiB.")
    if isinstance(error, UnreadablePostError):
        return InvalidRequest("The body of your request ended too early.")
    if isinstance(error, OperationalError | InterfaceError):
        logger.error("%s database: %s", request_id, error)
        return DatabaseFull() if is_disk_full(error) else DatabaseAway()
    logger.error("%s %s", request_id, where, exc_info=error)
    return InternalError(f"The server had an error while processing your request ({request_id}).")
