"""Salt of the prefix cache of the engine: decides which requests share cached prompts."""

from __future__ import annotations

from hashlib import sha256

from django.conf import settings


def cache_salt(project: str, key: str | None) -> str | None:
    """Derive the salt of a project and its `prompt_cache_key`. None shares the cache with all projects, which a setting allows.

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
