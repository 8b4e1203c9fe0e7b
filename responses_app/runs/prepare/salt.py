"""The salt of the engine's prefix cache: who shares the cached beginning of a prompt with whom."""

from __future__ import annotations

from hashlib import sha256

from django.conf import settings


def cache_salt(project: str, key: str | None) -> str | None:
    """Derive the salt of a project and its `prompt_cache_key`. None shares the cache with all projects, which a setting allows.

    Usage tells how much of a prompt was cached. Were the cache shared, a project could try out what another one has asked.
    """
    if not key and settings.RESPONSES_SHARED_PREFIX_CACHE:
        return None
    digest = sha256()
    for part in (project, key) if key else (project,):
        data = part.encode("utf-8", "surrogatepass")
        # With its length each pair of names has a text of its own: ("a/b", "c") is not ("a", "b/c").
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()
