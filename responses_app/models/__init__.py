"""Database models, a module for each group of tables."""

from __future__ import annotations

from responses_app.models.accounts import AuditEntry, LoginAttempt, Membership, Role, SavedView
from responses_app.models.chat_threads import BRANCH, MAX_PRESET_NAME_CHARS, MAX_THREAD_TITLE_CHARS, ChatPreset, ChatThread
from responses_app.models.containers import Container, ContainerFile, FileSource, MemoryLimit
from responses_app.models.conversations import Conversation, ConversationItem
from responses_app.models.files import MAX_FILENAME_CHARS, File, FilePurpose, FileStatus, StoredFile
from responses_app.models.keys import MAX_CONCURRENT, MAX_REQUESTS_PER_MINUTE, ApiKey, ConcurrencySlot
from responses_app.models.limits.projects import LimitCounter, OpenReservation, Project
from responses_app.models.limits.usage import UsageRecord
from responses_app.models.log import Event, LogPage, RoundPrompt, StoredRequest
from responses_app.models.refused_requests import RefusedRequest
from responses_app.models.responses import (
    CONVERSATION_DELETED,
    CONVERSATION_LOCK,
    PREVIOUS_DELETED,
    PROJECT_TERM_PREFIX,
    SEARCH_VECTOR,
    ApiFormat,
    Direction,
    Image,
    Item,
    LogForm,
    Response,
    Status,
)
from responses_app.models.tool_calls import Approval, ToolOutput
from responses_app.models.vector_stores import (
    MAX_STORE_NAME_CHARS,
    FileBatch,
    FileChunk,
    IngestionTurn,
    StoreFileStatus,
    VectorStore,
    VectorStoreFile,
)
from responses_app.models.webhooks import MAX_WEBHOOK_NAME_CHARS, DeliveryStatus, WebhookDelivery, WebhookEndpoint
from responses_app.models.workers import Lease, StorageSample, Worker

__all__ = [
    "BRANCH",
    "CONVERSATION_DELETED",
    "CONVERSATION_LOCK",
    "MAX_CONCURRENT",
    "MAX_FILENAME_CHARS",
    "MAX_PRESET_NAME_CHARS",
    "MAX_REQUESTS_PER_MINUTE",
    "MAX_STORE_NAME_CHARS",
    "MAX_THREAD_TITLE_CHARS",
    "MAX_WEBHOOK_NAME_CHARS",
    "PREVIOUS_DELETED",
    "PROJECT_TERM_PREFIX",
    "SEARCH_VECTOR",
    "ApiFormat",
    "ApiKey",
    "Approval",
    "AuditEntry",
    "ChatPreset",
    "ChatThread",
    "ConcurrencySlot",
    "Container",
    "ContainerFile",
    "Conversation",
    "ConversationItem",
    "DeliveryStatus",
    "Direction",
    "Event",
    "File",
    "FileBatch",
    "FileChunk",
    "FilePurpose",
    "FileSource",
    "FileStatus",
    "Image",
    "IngestionTurn",
    "Item",
    "Lease",
    "LimitCounter",
    "LogForm",
    "LogPage",
    "LoginAttempt",
    "Membership",
    "MemoryLimit",
    "OpenReservation",
    "Project",
    "RefusedRequest",
    "Response",
    "Role",
    "RoundPrompt",
    "SavedView",
    "Status",
    "StorageSample",
    "StoreFileStatus",
    "StoredFile",
    "StoredRequest",
    "ToolOutput",
    "UsageRecord",
    "VectorStore",
    "VectorStoreFile",
    "WebhookDelivery",
    "WebhookEndpoint",
    "Worker",
]
