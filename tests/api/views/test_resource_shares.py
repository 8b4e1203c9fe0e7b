"""Shares of projects in the requests to files, containers and vector stores."""

from __future__ import annotations

import asyncio

import pytest
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.test import override_settings

from responses_app.api import http
from responses_app.errors import RateLimited
from responses_app.models import ApiKey
from tests.support.waiting import run_ready_tasks


@override_settings(RESPONSES_RESOURCE_PARALLEL=2)
def test_many_requests_of_a_project_leave_a_place_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_WAITING", 2)

    async def main() -> None:
        gate, started_projects = asyncio.Event(), list[str]()

        async def handler(_request: HttpRequest, key: ApiKey) -> HttpResponseBase:
            started_projects.append(key.project)
            if key.project == "busy":
                await gate.wait()
            return HttpResponse()

        handle, busy = http.in_share(handler), ApiKey(project="busy")
        waiting = [asyncio.ensure_future(handle(HttpRequest(), busy)) for _ in range(3)]
        await run_ready_tasks(2)
        await handle(HttpRequest(), ApiKey(project="quiet"))
        with pytest.raises(RateLimited, match="wait already"):
            await handle(HttpRequest(), busy)
        assert started_projects == ["busy", "quiet"]
        gate.set()
        await asyncio.gather(*waiting)
        assert started_projects == ["busy", "quiet", "busy", "busy"]

    asyncio.run(main())
