"""Conversion of `--model` and `--engine` to the RESPONSES_MODELS setting."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from responses_app.engines.adapters import PREFIX, adapter_problem
from responses_app.engines.urls import join_urls, split_urls
from responses_app.server.bootstrap.installed import describe_missing_libraries, describe_missing_package
from responses_app.server.cli.engine_models import NoModelList, listed_models
from responses_app.server.model_files.folders import gguf_problem, kind_problem

DEMOS = ("demo-chat", "demo-harmony")
DEFAULT = "demo-chat"
# Engines by URL that generate from token ids: this server reads the tokenizer.
WITHOUT_TOKENIZER = frozenset({"http", "https", "script", "unix"})
# A tape without a model uses harmony, whose vocabulary is part of the harmony library.
HARMONY = Path(__file__).parent / "gpt_oss"
# Place of the key in engine URLs without a key.
KEYLESS = re.compile(r"(?:(?<=http://)|(?<=https://))(?![^/,]*@)")
# Address of a page of the hub, with or without a revision.
_HUB_NAME = r"/(?P<name>[\w.-]+/[\w.-]+)(?:/(?:tree|blob|resolve|commit)/(?P<revision>[^/?#]+))?"
_HUB_PAGE = re.compile(rf"(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co){_HUB_NAME}")
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
    entries = [f"{name}={_checked(url)}" for name, url in _pairs([parse_spec(text) for text in models], engine, build)]
    names = [entry.partition("=")[0] for entry in entries]
    if twice := {name for name in names if names.count(name) > 1}:
        raise InvalidModelSpec(
            f"two models are called {sorted(twice)[0]}: give one of them another name, as in --model NAME=SOURCE"
        )
    return " ".join(entries)


def with_key(engines: Sequence[str], key: str) -> list[str]:
    """Add `key` to the `http://` URLs of `--engine` that have none. Other accounts see the command line, but not the environment."""
    if not key:
        return list(engines)
    parts = [url.partition("?") for url in engines]
    return [KEYLESS.sub(f":{quote(key, safe='')}@", base) + mark + query for base, mark, query in parts]


def one_engine(engines: Sequence[str]) -> str | None:
    """Return the engine URL of all values of `--engine` together, None without any. Raises InvalidModelSpec."""
    try:
        return _checked(join_urls(engines) if len(engines) > 1 else engines[0]) if engines else None
    except ValueError as error:
        raise InvalidModelSpec(f"--engine: {error}") from None


def _checked(url: str) -> str:
    """Return an engine URL unchanged. Raises InvalidModelSpec for several URLs that cannot serve one model."""
    try:
        split_urls(url)
    except ValueError as error:
        raise InvalidModelSpec(str(error)) from None
    return url


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


def with_adapters(models: str, adapters: Sequence[str]) -> str:
    """Add LoRA adapters `NAME=FOLDER` to the engine URL of the only model of RESPONSES_MODELS. Raises InvalidModelSpec."""
    if not adapters:
        return models
    if len(models.split()) != 1:
        raise InvalidModelSpec(
            "--lora is for one model: with several models, name the adapters in the engine URL of each, as in "
            "--model NAME=vllm:///SOURCE?lora.ADAPTER=FOLDER"
        )
    base, _, url = models.strip().partition("=")
    if urlsplit(url).scheme != "vllm":
        raise InvalidModelSpec(f"--lora is for an engine in this server, and the engine of {base} runs elsewhere")
    folders: dict[str, str] = {}
    for text in adapters:
        name, separator, folder = text.partition("=")
        if not separator or not folder:
            raise InvalidModelSpec(f"--lora {text}: must be NAME=FOLDER")
        if name in folders or name == base:
            raise InvalidModelSpec(f"--lora {text}: two models are called {name}")
        folders[name] = str(Path(folder).expanduser().resolve())
        if problem := adapter_problem(name, folders[name]):
            raise InvalidModelSpec(f"--lora {text}: {problem}")
    return f"{base}={_with(url, {f'{PREFIX}{name}': folder for name, folder in folders.items()})}"


def with_engine_options(models: str, words: Sequence[str], read: Callable[[Sequence[str], str], Mapping[str, str]]) -> str:
    """Add options of vLLM from the command line to the engine URL of the only model of RESPONSES_MODELS.

    `read` returns the options by name, from the words and the entry of the model. Raises InvalidModelSpec for several models and
    for an engine elsewhere.
    """
    if not words:
        return models
    if len(models.split()) != 1:
        raise InvalidModelSpec(
            f"{words[0]} is for one model: with several models, name the options of vLLM in the engine URL of each, "
            "as in --model NAME=vllm:///SOURCE?max_model_len=32768"
        )
    name, _, url = models.strip().partition("=")
    if urlsplit(url).scheme != "vllm":
        raise InvalidModelSpec(
            f"{words[0]} is an option of vLLM, and the engine of {name} runs elsewhere: give the option to that engine"
        )
    return f"{name}={_with(url, dict(read(words, models)))}"


def check_fit(models: str) -> None:
    """Raise InvalidModelSpec for `--fit` if no model of RESPONSES_MODELS has an engine in this server."""
    if not any(urlsplit(entry.partition("=")[2]).scheme == "vllm" for entry in models.split()):
        raise InvalidModelSpec(
            "--fit is for an engine in this server, and every engine runs elsewhere: limit the context there"
        )


def check_tokenizers(models: str) -> None:
    """Raise InvalidModelSpec for an engine URL of RESPONSES_MODELS that is invalid, or lacks the parameter `tokenizer`."""
    for name, _, url in (entry.partition("=") for entry in models.split()):
        parts = urlsplit(_checked(url))
        if parts.scheme in WITHOUT_TOKENIZER and not dict(parse_qsl(parts.query)).get("tokenizer"):
            addition = f"{'&' if parts.query else '?'}tokenizer=FOLDER-OR-HUB-NAME"
            raise InvalidModelSpec(f"the engine URL of the model {name} names no tokenizer: add {addition} to the URL")


def on_disk(models: str) -> bool:
    """Return True if all models and tokenizers of a RESPONSES_MODELS setting are on this machine."""
    return all(Path(_source(entry.partition("=")[2])).exists() for entry in models.split())


def _source(url: str) -> str:
    parts = urlsplit(url)
    return dict(parse_qsl(parts.query)).get("tokenizer") or unquote(parts.netloc + parts.path)


def parse_spec(text: str) -> ModelSpec:
    """Parse `NAME=SOURCE`, or a source whose name is the hub name, the last part of a path, or the model of an engine URL.

    Raises InvalidModelSpec.
    """
    if named := _NAMED.fullmatch(text):
        return ModelSpec(named["name"], _checked_source(named["source"]))
    text = _checked_source(text)
    if "://" in text:
        parts = urlsplit(_checked(text))
        return ModelSpec(dict(parse_qsl(parts.query)).get("model") or _stem(parts.path or parts.netloc), text)
    return ModelSpec(_stem(text) if _is_path(text) else text, text)


def _checked_source(source: str) -> str:
    """Return a source without the last slash of a hub name. Raises InvalidModelSpec for a page of the hub."""
    if not source.strip():
        raise InvalidModelSpec("the name of the model is empty: give a folder, a name on the model hub, or demo-chat")
    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/")
    page = _HUB_PAGE.match(source) or (endpoint and re.match(f"{re.escape(endpoint)}{_HUB_NAME}", source))
    if page:
        revision = f"@{page['revision']}" if page["revision"] else ""
        raise InvalidModelSpec(f"{source} is a page of the model hub; its model is {page['name']}{revision}")
    return source.removesuffix("/") if re.fullmatch(r"[\w-][\w.-]*/[\w.-]+/", source) and not Path(source).exists() else source


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
    try:
        listed = listed_models(engine)
    except NoModelList as error:
        raise InvalidModelSpec(str(error)) from None
    for name, model in listed.items():
        parent = {"parent": model["parent"]} if model.get("parent") else {}
        tokenizer = query.get("tokenizer") or model.get("root") or name
        yield ModelSpec(name, _with(engine, {"model": name, "tokenizer": tokenizer, **parent}))


def local_source(source: str, build: Callable[[str], Path]) -> str:
    """Return the folder of a source, or the hub name. `build` builds a demo model's folder. Raises InvalidModelSpec."""
    if source in DEMOS:
        try:
            return str(build(source))
        except ImportError as error:
            missing = describe_missing_libraries() or describe_missing_package(source, error.name or "numpy")
            raise InvalidModelSpec(missing) from None
    folder = Path(source).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file() and (problem := kind_problem(folder)):
            raise InvalidModelSpec(f"{source} {problem}")
        return str(folder.resolve())
    if folder.is_file() and folder.suffix == ".gguf":
        raise InvalidModelSpec(f"{source} {gguf_problem()}")
    if folder.is_file():
        raise InvalidModelSpec(f"{source} is a file: give the folder with config.json, such as {folder.parent}")
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
    base, _, query = url.partition("?")
    return f"{base}?{urlencode({**dict(parse_qsl(query)), **more})}"
