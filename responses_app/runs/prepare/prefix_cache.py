"""Names for the prefix caches of engines: the salt that separates projects, and the session of a chain."""

from __future__ import annotations

from hashlib import sha256

from django.conf import settings

from responses_app.runs.create_request import CreateRequest


def cache_salt(project: str, key: str | None) -> str | None:
    """Derive the salt of a project and the `prompt_cache_key`. None shares the cache with all projects, which a setting allows.

    Usage shows the cached part of a prompt. With a shared cache a project could find out the prompts of another one.
    """
    if not key and settings.RESPONSES_SHARED_PREFIX_CACHE:
        return None
    digest = sha256()
    for part in (project, key) if key else (project,):
        data = part.encode("utf-8", "surrogatepass")
        # The length makes the text of each pair of names unique: ("a/b", "c") is not ("a", "b/c").
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def session_id(create_request: CreateRequest, thread: str, uid: str) -> str:
    """Return the session of the response `uid`: equal for all turns of a chain, for engines that cache prefixes.

    `thread` is the id of the conversation, or of the first response of the chain. A `prompt_cache_key` comes before the chain,
    since the prefix cache is separate for each key, and other chains with the key may share a prefix.
    """
    if create_request.cache_key and create_request.conversation is None:
        return cache_salt(create_request.project, create_request.cache_key) or uid
    return thread or uid
