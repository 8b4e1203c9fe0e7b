"""Driver steps: run in turn, with a line of JSON for each result."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any


async def run_steps(*runs: Callable[[], Awaitable[Any]]) -> None:
    """Run functions in turn; the name of a step is that of the function, without `_` at the end."""
    for run in runs:
        try:
            result = await run()
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"step": run.__name__.rstrip("_"), "said": result}), flush=True)  # noqa: T201


async def failure(run: Callable[[], Awaitable[Any]]) -> Any:
    """Return the name and the status of the error that `run` raises."""
    try:
        await run()
    except Exception as error:
        return [type(error).__name__, getattr(error, "status_code", None)]
    return "no error"
