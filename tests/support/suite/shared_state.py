"""State that tests of a process share, and that each test finds empty: caches, counters, and rows outside of the test's transaction.

The maintenance of a manager writes with a connection of its own, so that no rollback removes its rows.
"""

from __future__ import annotations

import sys
from typing import Any, Final

import pytest
from django.test import TransactionTestCase

# Functions that clear the state of a module, by module. The state of a module that nothing has imported is empty.
CLEARED: Final = {
    "django.core.cache": "cache.clear",
    "responses_app.access.api_keys": "clear_cache",
    "responses_app.store.files.quota": "forget_warning",
    "responses_app.store.log.rows.event_codec": "packing.stop",
    "responses_app.store.storage_report.storage_state": "storage_state.clear",
    "responses_app.store.refused_requests": "buffer.clear",
    "responses_app.tools.mcp.sessions": "clear_cache",
    "responses_app.web.chat.shared_threads": "forget_requests",
}


def clear(request: pytest.FixtureRequest) -> None:
    """Clear the state before a test."""
    for name, function in CLEARED.items():
        if module := sys.modules.get(name):
            _attribute(module, function)()
    if _has_database(request):
        from responses_app.models import RefusedRequest

        RefusedRequest.objects.all().delete()


def _attribute(module: object, path: str) -> Any:
    for name in path.split("."):
        module = getattr(module, name)
    return module


def _has_database(request: pytest.FixtureRequest) -> bool:
    if request.node.get_closest_marker("django_db"):
        request.getfixturevalue("db")
        return True
    return isinstance(request.cls, type) and issubclass(request.cls, TransactionTestCase) and bool(request.cls.databases)
