"""Addresses of the API; a trailing slash makes no difference, since a redirected POST would lose its body (checklist 12)."""

from __future__ import annotations

from django.urls import re_path

from responses_app.api import conversations, listing, models, responses
from responses_app.api.door import door, nowhere

API = r"^(?:openresponses/)?v1/"
RESPONSE = API + r"responses/(?P<uid>[^/]+)"
CONVERSATION = API + r"conversations/(?P<uid>[^/]+)"

urlpatterns = [
    re_path(API + r"responses/?$", door(GET=listing.index, POST=responses.create)),
    re_path(API + r"responses/input_tokens/?$", door(POST=responses.input_tokens)),
    re_path(API + r"responses/compact/?$", door(POST=responses.compact)),
    re_path(RESPONSE + r"/?$", door(GET=responses.retrieve, DELETE=responses.delete)),
    re_path(RESPONSE + r"/cancel/?$", door(POST=responses.cancel)),
    re_path(RESPONSE + r"/input_items/?$", door(GET=responses.input_items)),
    re_path(API + r"conversations/?$", door(POST=conversations.create)),
    re_path(CONVERSATION + r"/?$", door(GET=conversations.retrieve, POST=conversations.update, DELETE=conversations.delete)),
    re_path(CONVERSATION + r"/items/?$", door(GET=conversations.list_items, POST=conversations.add_items)),
    re_path(
        CONVERSATION + r"/items/(?P<item>[^/]+)/?$",
        door(GET=conversations.retrieve_item, DELETE=conversations.remove_item),
    ),
    re_path(API + r"models/?$", door(GET=models.index)),
    re_path(API + r"models/(?P<name>.+?)/?$", door(GET=models.show, DELETE=models.delete)),
    re_path(r"^health/?$", door(public=True, GET=models.health, HEAD=models.health)),
    re_path(API.rstrip("/") + r"(?P<path>/[\s\S]*)?$", nowhere),
]
