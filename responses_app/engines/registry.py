"""Engine registry: opens an engine by URL."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from responses_app.engine_interface import Engine
from responses_app.engines.replay.engine import MAX_MODEL_LEN, ReplayEngine
from responses_app.engines.urls import join_urls, location, split_urls

START_WAIT_S = 5.0  # The same default as in project/settings.py, which engines do not import.


def open_engine(url: str) -> Engine:
    """Create the engine of a URL, not started yet. Raises ValueError for an invalid URL, OSError for a missing tape.

    - `vllm:///srv/models/qwen3?max_model_len=4096` or `vllm:///Qwen/Qwen3-0.6B`: vLLM in this process. The path is a directory
      if it exists, otherwise a name on the model hub; query parameters are fields of vLLM's AsyncEngineArgs.
    - `http://host:8000?model=name` (or https, `http://:key@host` for a server with an API key): a `vllm serve` process
      started with `--enable-scale-out`. Add `priority=1` if the server has `--scheduling-policy priority`, `max_model_len`
      if a proxy hides it. `session_header` names the header of the session for a router in between. `start_wait` is the number
      of seconds to wait for the server, see `start_wait_s`.
    - `http://a:8000,http://b:8000?model=name`: several such processes of one model, see `EnginePool` and `split_urls`.
    - `unix:///srv/data/engines/name/engine.sock`: an engine worker of this machine, see `SocketEngine`. `max_model_len` lets the server
      start without the worker, `start_wait` is as for `http:`.
    - `script:///srv/tape.jsonl?loop=1`: replay of a tape, see `read_tape`.
    """
    urls = split_urls(url)
    return _open(url) if len(urls) == 1 else _pool(urls)


def _open(url: str) -> Engine:
    parts = urlsplit(url)
    opener = _OPENERS.get(parts.scheme)
    if opener is None:
        raise ValueError(unknown_scheme(parts.scheme or url))
    return opener(parts)


def _vllm(parts: SplitResult) -> Engine:
    from responses_app.engines.vllm.inprocess import InProcessVllm

    return InProcessVllm(_model(parts), _query(parts))


def _http(parts: SplitResult) -> Engine:
    from responses_app.engines.http.client import HttpVllm
    from responses_app.engines.http.codec import SESSION_HEADER

    query = _query(parts, {"model", "max_model_len", "priority", "session_header", "start_wait"})
    host = parts.netloc.rpartition("@")[2]
    return HttpVllm(
        f"{parts.scheme}://{host}{parts.path.rstrip('/')}",
        query.get("model"),
        unquote(parts.password) if parts.password else None,
        max_model_len=_parse_number(query, "max_model_len"),
        priorities=_parse_bool(query.get("priority", "0")),
        start_wait=start_wait_s(query),
        session_header=query.get("session_header", SESSION_HEADER),
    )


def _unix(parts: SplitResult) -> Engine:
    from responses_app.engines.socket.client import SocketEngine

    query = _query(parts, {"max_model_len", "start_wait"})
    return SocketEngine(
        _path(parts),
        max_model_len=_parse_number(query, "max_model_len"),
        start_wait=start_wait_s(query),
    )


def _pool(urls: Sequence[str]) -> Engine:
    from responses_app.engines.pool.engine import EnginePool

    wait_s = start_wait_s(_query(urlsplit(urls[0])))
    # The pool waits for its engines: one engine that is away must not delay the others.
    members = {location(url): _open(join_urls([url], start_wait="0")) for url in urls}
    return EnginePool(members, start_wait=wait_s)


def _script(parts: SplitResult) -> Engine:
    query = _query(parts, {"loop", "max_model_len"})
    length = _parse_number(query, "max_model_len") or MAX_MODEL_LEN
    return ReplayEngine.from_file(_path(parts), loop=_parse_bool(query.get("loop", "0")), max_model_len=length)


_OPENERS: Mapping[str, Callable[[SplitResult], Engine]] = {
    "vllm": _vllm,
    "http": _http,
    "https": _http,
    "unix": _unix,
    "script": _script,
}


SCHEMES = frozenset(_OPENERS)


def unknown_scheme(text: str) -> str:
    """Return the message for a scheme that no engine has."""
    return f"no engine for {text!r}: an engine URL begins with {', '.join(_OPENERS)} and ://"


def _query(parts: SplitResult, known: set[str] | None = None) -> dict[str, str]:
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    if known is not None and (unknown := set(query) - known):
        names, allowed = ", ".join(sorted(unknown)), ", ".join(sorted(known))
        raise ValueError(f"unknown parameter {names} in a {parts.scheme}: engine URL; allowed: {allowed}")
    return query


def _parse_number(query: Mapping[str, str], name: str) -> int | None:
    """Return a parameter that is a whole number above 0, or None without the parameter. Raises ValueError."""
    text = query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ValueError(f"{name} in an engine URL must be a whole number above 0, not {text!r}")
    return int(text)


def start_wait_s(query: Mapping[str, str]) -> float:
    """Return the seconds to wait for the server at the start: `start_wait` of the URL, or RESPONSES_ENGINE_START_WAIT.

    Raises ValueError.
    """
    name, text = "start_wait in an engine URL", query.get("start_wait")
    if text is None:
        name, text = "RESPONSES_ENGINE_START_WAIT", os.environ.get("RESPONSES_ENGINE_START_WAIT") or str(START_WAIT_S)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise ValueError(f"{name} must be a number of seconds, not {text!r}")
    return seconds


def _parse_bool(value: str) -> bool:
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
    # Names on the hub are `name` or `owner/name`; a longer path must be a directory.
    if name.count("/") > 1:
        raise ValueError(f"no such model directory: {path}")
    return name
