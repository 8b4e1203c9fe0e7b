"""Storage page: what takes space, how fast the database grows, and whether archiving and deletion keep pace."""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from responses_app.store.cluster.clock import database_time
from responses_app.store.storage_report.samples import LATE_S, calculate_rates, read_sample, recent_samples
from responses_app.store.storage_report.sizes import project_sizes, table_sizes
from responses_app.web.private import private


@private("GET", "HEAD")
def show(request: HttpRequest) -> HttpResponse:
    """Show the storage report at GET /storage to superusers."""
    if not request.user.is_superuser:
        raise PermissionDenied
    now = database_time()
    sample = read_sample(now)
    context = {
        "section": "overview",
        "sample": sample,
        "late": sample.oldest_wait_s > LATE_S,
        "rates": calculate_rates(recent_samples(now), sample),
        "tables": table_sizes(),
        "projects": project_sizes(sample.database_bytes),
        "archives": settings.RESPONSES_SEAL_AFTER is not None,
        "keeps": settings.RESPONSES_KEEP_RESPONSES,
    }
    return render(request, "web/storage.html", context)
