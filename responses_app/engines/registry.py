"""Chooses an engine by its URL, as Django people know it from DATABASE_URL."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from responses_app.engine_interface import Engine
from responses_app.engines.replay.engine import MAX_MODEL_LEN, ReplayEngine

START_WAIT_S = 5.0  # As in project/settings.py, which engines do not know.


def open_engine(url: str) -> Engine:
    """An engine that is not started yet. Raises ValueError for a URL that names none, OSError for a missing tape.

    - `vllm:///srv/models/qwen3?max_model_len=4096` or `vllm:///Qwen/Qwen3-0.6B`: vLLM in this process. The path is a
      directory if there is one, else a name on the model hub; query parameters are fields of vLLM's AsyncEngineArgs.
    - `http://host:8000?model=name` (or https, `http://:key@host` for a server with an API key): a `vllm serve`
      started with `--enable-scale-out`. `priority=1` if it also has `--scheduling-policy priority`; `max_model_len` if
      what is in front of it does not say; `start_wait` is how many seconds it may take to come up (see `start_wait`).
    - `script:///srv/tape.jsonl?loop=1`: a tape, see `tape.read`.
    """
    parts = urlsplit(url)
    opener = _OPENERS.get(parts.scheme)
    if opener is None:
        raise ValueError(f"no engine for {parts.scheme or url!r}: an engine URL begins with {', '.join(_OPENERS)} and ://")
    return opener(parts)


def _vllm(parts: SplitResult) -> Engine:
    from responses_app.engines.vllm.inprocess import InProcessVllm

    return InProcessVllm(_model(parts), _query(parts))


def _http(parts: SplitResult) -> Engine:
    from responses_app.engines.http.client import HttpVllm

    query = _query(parts, {"model", "max_model_len", "priority", "start_wait"})
    host = parts.netloc.rpartition("@")[2]
    return HttpVllm(
        f"{parts.scheme}://{host}{parts.path.rstrip('/')}",
        query.get("model"),
        unquote(parts.password) if parts.password else None,
        max_model_len=int(query["max_model_len"]) if "max_model_len" in query else None,
        priorities=_yes(query.get("priority", "0")),
        start_wait=float(query["start_wait"]) if "start_wait" in query else start_wait(),
    )


def start_wait() -> float:
    """How many seconds to wait at a start for servers that do not answer: RESPONSES_ENGINE_START_WAIT. Raises ValueError."""
    return float(os.environ.get("RESPONSES_ENGINE_START_WAIT") or START_WAIT_S)


def _script(parts: SplitResult) -> Engine:
    query = _query(parts, {"loop", "max_model_len"})
    length = int(query.get("max_model_len", MAX_MODEL_LEN))
    return ReplayEngine.from_file(_path(parts), loop=_yes(query.get("loop", "0")), max_model_len=length)


_OPENERS: Mapping[str, Callable[[SplitResult], Engine]] = {"vllm": _vllm, "http": _http, "https": _http, "script": _script}


def _query(parts: SplitResult, known: set[str] | None = None) -> dict[str, str]:
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    if known is not None and (unknown := set(query) - known):
        names, allowed = ", ".join(sorted(unknown)), ", ".join(sorted(known))
        raise ValueError(f"unknown parameter {names} in a {parts.scheme}: engine URL; allowed: {allowed}")
    return query


def _yes(value: str) -> bool:
    return value.lower() not in ("", "0", "no", "off", "false")


def _path(parts: SplitResult) -> str:
    path = unquote(parts.netloc + parts.path)
    if not path.strip("/"):
        raise ValueError(f"{parts.scheme}: engine URL without a path")
    return path


def _model(parts: SplitResult) -> str:
    path = _path(parts)
    if Path(path).exists():
        return path
    name = path.strip("/")
    # Names on the hub are `name` or `owner/name`; anything deeper can only have been meant as a directory.
    if name.count("/") > 1:
        raise ValueError(f"no such model directory: {path}")
    return name
