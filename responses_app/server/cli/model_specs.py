"""Conversion of `--model` and `--engine` to the RESPONSES_MODELS setting."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import httpx2

from responses_app.engines.registry import default_start_wait_s

DEMOS = ("demo-chat", "demo-harmony")
DEFAULT = "demo-chat"
LIST_LIMIT = 10.0
RETRY = 0.25
# A tape without a model uses harmony, whose vocabulary is part of the harmony library.
HARMONY = Path(__file__).parent / "gpt_oss"
_NAMED = re.compile(r"(?![a-z]+://)(?P<name>[^\s=]+)=(?P<source>\S.*)")


class InvalidModelSpec(Exception):
    """Invalid `--model` or `--engine`."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Value of an option `--model`: the listed name, and the source."""

    name: str
    source: str


def models_setting(models: tuple[str, ...], engine: str | None, build: Callable[[str], Path]) -> str:
    """Return RESPONSES_MODELS: `name=engine-url` for each model, separated by blanks. `build` builds a demo model's folder.

    Without `engine`, vLLM loads each source in this server. With `engine`, the source names the tokenizer, and the engine
    generates; without models, an `http://` engine lists its own. Raises InvalidModelSpec.
    """
    entries = [f"{name}={url}" for name, url in _pairs([parse_spec(text) for text in models], engine, build)]
    names = [entry.partition("=")[0] for entry in entries]
    if twice := {name for name in names if names.count(name) > 1}:
        raise InvalidModelSpec(
            f"two models are called {sorted(twice)[0]}: give one of them another name, as in --model NAME=SOURCE"
        )
    return " ".join(entries)


def with_parsers(models: str, parsers: Mapping[str, str]) -> str:
    """Add named parsers and a chat template to the engine URL of the only model of RESPONSES_MODELS. Raises InvalidModelSpec."""
    if not parsers:
        return models
    if len(models.split()) != 1:
        raise InvalidModelSpec(
            "--reasoning-parser, --tool-parser and --chat-template are for one model: with several models, name these in the "
            "engine URL of each, as in --model NAME=vllm:///SOURCE?tool_parser=PARSER"
        )
    name, _, url = models.strip().partition("=")
    return f"{name}={_with(url, dict(parsers))}"


def on_disk(models: str) -> bool:
    """Return True if all models and tokenizers of a RESPONSES_MODELS setting are on this machine."""
    return all(Path(_source(entry.partition("=")[2])).exists() for entry in models.split())


def _source(url: str) -> str:
    parts = urlsplit(url)
    return dict(parse_qsl(parts.query)).get("tokenizer") or unquote(parts.netloc + parts.path)


def parse_spec(text: str) -> ModelSpec:
    """Parse `NAME=SOURCE`, or a source whose name is the hub name, the last part of a path, or the model of an engine URL."""
    if named := _NAMED.fullmatch(text):
        return ModelSpec(named["name"], named["source"])
    if "://" in text:
        parts = urlsplit(text)
        return ModelSpec(dict(parse_qsl(parts.query)).get("model") or _stem(parts.path or parts.netloc), text)
    return ModelSpec(_stem(text) if _is_path(text) else text, text)


def _pairs(models: list[ModelSpec], engine: str | None, build: Callable[[str], Path]) -> Iterator[tuple[str, str]]:
    if engine and engine.startswith("vllm:") and len(models) > 1:
        raise InvalidModelSpec("--engine vllm:// holds one model: give each its own, as in --model NAME=vllm:///path")
    if not models and engine:
        models = list(_offered(engine))
    for model in models or [ModelSpec(DEFAULT, DEFAULT)]:
        if "://" in model.source:
            yield model.name, model.source
        else:
            yield model.name, _engine_url(model, engine, build)


def _engine_url(model: ModelSpec, engine: str | None, build: Callable[[str], Path]) -> str:
    if engine and engine.startswith("vllm:"):
        return engine
    place = local_source(model.source, build)
    if engine is None:
        return f"vllm:///{quote(place.lstrip('/'))}"
    more = {"tokenizer": place}
    return _with(engine, {**more, "model": model.name} if engine.startswith("http") else more)


def _offered(engine: str) -> Iterator[ModelSpec]:
    """Iterate over the models that an engine lists."""
    parts = urlsplit(engine)
    query = dict(parse_qsl(parts.query))
    if parts.scheme in ("vllm", "script"):
        url = engine if parts.scheme == "vllm" or "tokenizer" in query else _with(engine, {"tokenizer": str(HARMONY)})
        yield ModelSpec(_stem(parts.path or parts.netloc), url)
        return
    for model in _listed(engine):
        if query.get("model") in (None, model["id"]):
            tokenizer = query.get("tokenizer") or model.get("root") or model["id"]
            yield ModelSpec(model["id"], _with(engine, {"model": model["id"], "tokenizer": tokenizer}))


def _listed(engine: str) -> list[dict[str, str]]:
    parts = urlsplit(engine)
    host = parts.netloc.rpartition("@")[2]
    headers = {"Authorization": f"Bearer {parts.password}"} if parts.password else {}
    try:
        answer = _get_with_retry(f"{parts.scheme}://{host}{parts.path.rstrip('/')}/v1/models", headers, engine)
        listed: list[dict[str, str]] = answer.raise_for_status().json()["data"]
    except (httpx2.HTTPError, ValueError, KeyError) as error:
        raise InvalidModelSpec(f"the engine at {host} does not list its models ({error}); name them with --model") from None
    return listed


def _get_with_retry(url: str, headers: dict[str, str], engine: str) -> httpx2.Response:
    """Get a URL of an engine that may still be loading; retries for RESPONSES_ENGINE_START_WAIT seconds."""
    wait_option = dict(parse_qsl(urlsplit(engine).query)).get("start_wait")
    deadline = time.monotonic() + (float(wait_option) if wait_option else default_start_wait_s())
    while True:
        try:
            return httpx2.get(url, headers=headers, timeout=LIST_LIMIT)
        except httpx2.TransportError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(RETRY)


def local_source(source: str, build: Callable[[str], Path]) -> str:
    """Return the folder of a source, or the hub name. `build` builds a demo model's folder. Raises InvalidModelSpec."""
    if source in DEMOS:
        return str(build(source))
    folder = Path(source).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise InvalidModelSpec(f"{source} holds no config.json, so the folder has no checkpoint")
        return str(folder.resolve())
    if _is_path(source):
        raise InvalidModelSpec(f"there is no folder {source}")
    return source


def _is_path(source: str) -> bool:
    """Return True for a path: anything but a hub name, `name` or `owner/name`."""
    return source.startswith((".", "/", "~")) or source.count("/") > 1 or Path(source).is_dir()


def _stem(path: str) -> str:
    name = unquote(Path(path.rstrip("/")).name).removesuffix(".jsonl")
    return "-".join(name.split()) or "model"  # A blank would end the entry of the setting.


def _with(url: str, more: dict[str, str]) -> str:
    parts = urlsplit(url)
    query = urlencode({**dict(parse_qsl(parts.query)), **more})
    # urlunsplit drops the slashes before an empty host of an unknown scheme.
    return f"{parts.scheme}://{parts.netloc}{parts.path}?{query}"
