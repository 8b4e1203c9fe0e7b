"""URLs of the API. A trailing slash is optional, since a redirected POST would lose the body."""

from __future__ import annotations

from django.urls import re_path

from responses_app.api.formats import chat_completions, message_files, messages
from responses_app.api.formats.message_files import by_version
from responses_app.api.http import api_view, in_share, shared_view
from responses_app.api.storage_share import in_storage_share
from responses_app.api.unknown_urls import not_found
from responses_app.api.views import (
    container_files,
    containers,
    conversations,
    files,
    health,
    models,
    response_list,
    responses,
    usage,
    vector_store_files,
    vector_stores,
    webhook_endpoints,
)

API = r"^(?:openresponses/)?v1/"
RESPONSE = API + r"responses/(?P<uid>[^/]+)"
FILE = API + r"files/(?P<uid>[^/]+)"
CONTAINER = API + r"containers/(?P<uid>[^/]+)"
CONTAINER_FILE = CONTAINER + r"/files/(?P<file>[^/]+)"
CONVERSATION = API + r"conversations/(?P<uid>[^/]+)"
COMPLETION = r"^v1/chat/completions/(?P<uid>[^/]+)"
STORE = API + r"vector_stores/(?P<uid>[^/]+)"
STORE_FILE = STORE + r"/files/(?P<file>[^/]+)"
WEBHOOK = API + r"webhook_endpoints/(?P<uid>[^/]+)"
BATCH = STORE + r"/file_batches/(?P<batch>[^/]+)"

urlpatterns = [
    re_path(API + r"responses/?$", api_view(GET=in_share(response_list.index), POST=responses.create), name="api-responses"),
    re_path(API + r"responses/input_tokens/?$", api_view(POST=responses.input_tokens)),
    re_path(API + r"responses/compact/?$", api_view(POST=responses.compact)),
    re_path(RESPONSE + r"/?$", api_view(GET=responses.retrieve, DELETE=responses.delete)),
    re_path(RESPONSE + r"/cancel/?$", api_view(POST=responses.cancel)),
    re_path(RESPONSE + r"/input_items/?$", api_view(GET=in_share(responses.input_items))),
    re_path(r"^v1/messages/?$", api_view(POST=messages.create)),
    re_path(r"^v1/messages/count_tokens/?$", api_view(POST=messages.count_tokens)),
    re_path(r"^v1/chat/completions/?$", api_view(GET=in_share(chat_completions.index), POST=chat_completions.create)),
    re_path(
        COMPLETION + r"/?$",
        api_view(GET=chat_completions.retrieve, POST=chat_completions.update, DELETE=chat_completions.delete),
    ),
    re_path(COMPLETION + r"/messages/?$", api_view(GET=in_share(chat_completions.messages))),
    re_path(API + r"conversations/?$", api_view(POST=conversations.create)),
    re_path(
        CONVERSATION + r"/?$", api_view(GET=conversations.retrieve, POST=conversations.update, DELETE=conversations.delete)
    ),
    re_path(CONVERSATION + r"/items/?$", api_view(GET=in_share(conversations.list_items), POST=conversations.add_items)),
    re_path(
        CONVERSATION + r"/items/(?P<item>[^/]+)/?$",
        api_view(GET=conversations.retrieve_item, DELETE=conversations.remove_item),
    ),
    re_path(
        API + r"files/?$",
        api_view(
            GET=in_share(by_version(files.index, message_files.index)),
            POST=in_storage_share(by_version(files.create, message_files.create)),
        ),
        name="api-files",
    ),
    re_path(
        FILE + r"/?$",
        api_view(
            GET=in_share(by_version(files.retrieve, message_files.retrieve)),
            DELETE=in_storage_share(by_version(files.delete, message_files.delete)),
        ),
    ),
    re_path(FILE + r"/content/?$", api_view(GET=in_storage_share(files.content))),
    re_path(API + r"containers/?$", shared_view(GET=containers.index, POST=containers.create)),
    re_path(CONTAINER + r"/?$", api_view(GET=in_share(containers.retrieve), DELETE=in_storage_share(containers.delete))),
    re_path(
        CONTAINER + r"/files/?$", api_view(GET=in_share(container_files.index), POST=in_storage_share(container_files.create))
    ),
    re_path(
        CONTAINER_FILE + r"/?$",
        api_view(GET=in_share(container_files.retrieve), DELETE=in_storage_share(container_files.delete)),
    ),
    re_path(CONTAINER_FILE + r"/content/?$", api_view(GET=in_storage_share(container_files.content))),
    re_path(
        API + r"vector_stores/?$",
        shared_view(GET=vector_stores.index, POST=vector_stores.create),
        name="api-vector-stores",
    ),
    re_path(STORE + r"/?$", shared_view(GET=vector_stores.retrieve, POST=vector_stores.update, DELETE=vector_stores.delete)),
    re_path(STORE + r"/search/?$", shared_view(POST=vector_stores.search_results)),
    re_path(STORE + r"/files/?$", shared_view(GET=vector_store_files.index, POST=vector_store_files.create)),
    re_path(
        STORE_FILE + r"/?$",
        shared_view(GET=vector_store_files.retrieve, POST=vector_store_files.update, DELETE=vector_store_files.delete),
    ),
    re_path(STORE_FILE + r"/content/?$", shared_view(GET=vector_store_files.content)),
    re_path(STORE + r"/file_batches/?$", shared_view(POST=vector_store_files.create_batch)),
    re_path(BATCH + r"/?$", shared_view(GET=vector_store_files.retrieve_batch)),
    re_path(BATCH + r"/cancel/?$", shared_view(POST=vector_store_files.cancel_batch)),
    re_path(BATCH + r"/files/?$", shared_view(GET=vector_store_files.list_batch_files)),
    re_path(API + r"webhook_event_types/?$", api_view(GET=webhook_endpoints.event_types)),
    re_path(API + r"webhook_endpoints/?$", shared_view(GET=webhook_endpoints.index, POST=webhook_endpoints.create)),
    re_path(
        WEBHOOK + r"/?$",
        shared_view(GET=webhook_endpoints.retrieve, POST=webhook_endpoints.update, DELETE=webhook_endpoints.delete),
    ),
    re_path(WEBHOOK + r"/rotate_secret/?$", shared_view(POST=webhook_endpoints.rotate_secret)),
    re_path(WEBHOOK + r"/test/?$", api_view(POST=webhook_endpoints.test)),
    re_path(r"^v1/organization/usage/completions/?$", api_view(GET=usage.completions)),
    re_path(r"^v1/organization/costs/?$", api_view(GET=usage.costs)),
    re_path(API + r"models/?$", api_view(GET=models.index)),
    re_path(API + r"models/(?P<name>.+?)/?$", api_view(GET=models.show, DELETE=models.delete)),
    re_path(r"^metrics/?$", api_view(public=True, GET=health.metrics)),
    re_path(r"^health/live/?$", api_view(public=True, GET=health.live, HEAD=health.live)),
    re_path(r"^health(?:/ready)?/?$", api_view(public=True, GET=health.ready, HEAD=health.ready)),
    re_path(API.rstrip("/") + r"(?P<path>/[\s\S]*)?$", not_found),
]
