"""Runs the steps of a driver in turn, and prints what each came to as a line of JSON."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any


async def run_steps(*runs: Callable[[], Awaitable[Any]]) -> None:
    """Run functions in turn. Each is a step of its own name, without `_` at the end."""
    for run in runs:
        try:
            result = await run()
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"step": run.__name__.rstrip("_"), "said": result}), flush=True)  # noqa: T201


async def failure(run: Callable[[], Awaitable[Any]]) -> Any:
    """The name and the status of the error that `run` must end with."""
    try:
        await run()
    except Exception as error:
        return [type(error).__name__, getattr(error, "status_code", None)]
    return "no error"
