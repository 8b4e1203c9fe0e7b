"""Pages that may be read from a replica of the database."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.http import HttpRequest, HttpResponse

from responses_app.store.replica import FAILURES, reading, replica

P = ParamSpec("P")


def reads_replica(
    view: Callable[Concatenate[HttpRequest, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Let a view that changes nothing read the replica, and the primary where the replica is late or fails."""

    @wraps(view)
    def read(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if replica.is_current():
            try:
                with reading():
                    return view(request, *args, **kwargs)
            except FAILURES as error:
                replica.failed(error)
        return view(request, *args, **kwargs)

    return read
