"""Models that `http://` engines list, the same at all URLs of a model."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

import httpx2

from responses_app.engines.http.connections import plain_http_hint
from responses_app.engines.registry import start_wait_s
from responses_app.engines.urls import location, split_urls, without_version

LIST_LIMIT = 10.0
RETRY = 0.25
# Files of a checkpoint that determine prompts and texts.
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")

Models: TypeAlias = Mapping[str, Mapping[str, Any]]


class NoModelList(Exception):
    """Engines that list no models, or different models."""


def listed_models(engine: str) -> Models:
    """Return the models that all URLs of `engine` list, by name. Raises NoModelList.

    A URL that cannot be reached is left out while another URL lists its models. With `tokenizer=` the tokenizers are not compared.
    """
    urls, query = split_urls(engine), dict(parse_qsl(urlsplit(engine).query))
    with ThreadPoolExecutor(len(urls)) as threads:
        answers = dict(zip(map(location, urls), threads.map(_listed, urls), strict=True))
    lists = {place: answer for place, answer in answers.items() if not isinstance(answer, NoModelList)}
    if not lists:
        raise next(answer for answer in answers.values() if isinstance(answer, NoModelList))
    models = {place: _models_named(models, query.get("model")) for place, models in lists.items()}
    _check_same_names(models)
    if "max_model_len" not in query:
        _check_same(models, "max_model_len", lambda card: card.get("max_model_len"))
    if "tokenizer" not in query:
        _check_same(models, "tokenizer", lambda card: _tokenizer(card.get("root")))
    return next(iter(models.values()))


def _models_named(models: Models, name: str | None) -> Models:
    return {model: card for model, card in models.items() if name in (None, model)}


def _check_same_names(models: Mapping[str, Models]) -> None:
    """Raise NoModelList if two engines list different models."""
    (first, expected), *others = models.items()
    for place, other_models in others:
        if set(other_models) != set(expected):
            served = f"{first} serves {_names(expected)}, and {place} serves {_names(other_models)}"
            raise NoModelList(f"{served}: several URLs are for one model; use --model NAME=URL for each of several models")


def _check_same(models: Mapping[str, Models], subject: str, value: Callable[[Mapping[str, Any]], object]) -> None:
    """Raise NoModelList if `value` of a model differs between two engines."""
    (first, expected), *others = models.items()
    for place, other_models in others:
        for name in expected:
            if value(expected[name]) != value(other_models[name]):
                cards = f"{_card(expected[name])} at {first}, and {_card(other_models[name])} at {place}"
                raise NoModelList(
                    f"the {subject} of {name} differs: {cards}; if the model is the same, add {subject}= to the URL"
                )


def _card(card: Mapping[str, Any]) -> str:
    return f"{card.get('root')} with max_model_len {card.get('max_model_len')}"


def _tokenizer(root: str | None) -> object:
    """Return what identifies the tokenizer of a model: the files of a folder on this machine, otherwise the name."""
    files = [Path(root) / name for name in TOKENIZER_FILES] if root else []
    contents = [file.read_bytes() if file.is_file() else b"" for file in files]
    return contents if any(contents) else root


def _names(models: Models) -> str:
    return ", ".join(models) or "nothing"


def _listed(url: str) -> Models | NoModelList:
    """Return the models of a single URL, or the error."""
    try:
        wait_s = start_wait_s(dict(parse_qsl(urlsplit(url).query)))
    except ValueError as error:
        return NoModelList(str(error))
    password = urlsplit(url).password
    headers = {"Authorization": f"Bearer {unquote(password)}"} if password else {}
    place = location(url)
    try:
        answer = _get_with_retry(f"{place}/v1/models", headers, wait_s)
        if answer.is_error:
            return NoModelList(_refusal(url, answer.status_code))
        models = {model["id"]: model for model in answer.json()["data"]}
        return {name: _completed(model, models) for name, model in models.items()}
    except httpx2.TransportError as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            trust = "SSL_CERT_FILE names a file with the authorities to trust"
            return NoModelList(f"the certificate of the engine at {urlsplit(place).netloc} is not accepted ({error}); {trust}")
        return NoModelList(
            f"the engine at {urlsplit(place).netloc} is away ({error}): start it, or correct its URL{plain_http_hint(place, error)}"
        )
    except (httpx2.HTTPError, ValueError, KeyError) as error:
        return NoModelList(f"the engine at {urlsplit(place).netloc} does not list its models ({error}); {_remedy(place)}")


def _refusal(url: str, status: int) -> str:
    """Return what an engine that answers its list of models with an error lacks, and what to do."""
    parts, place = urlsplit(url), location(url)
    host = urlsplit(place).netloc
    if status in (httpx2.codes.UNAUTHORIZED, httpx2.codes.FORBIDDEN):
        refused = "refuses the key of its URL" if parts.password else "wants a key"
        return f"the engine at {host} {refused} (HTTP {status}): give its key in the URL, as in {parts.scheme}://:KEY@{host}"
    reason = f"GET {urlsplit(place).path}/v1/models is answered {status}"
    return f"the engine at {host} does not list its models ({reason}); {_remedy(place)}"


def _completed(model: Mapping[str, Any], models: Models) -> Mapping[str, Any]:
    """Return a model with the tokenizer and the length of its base model, which vLLM does not name for a LoRA adapter."""
    base = models.get(model.get("parent") or "", {})
    return {**model, **{name: base[name] for name in ("root", "max_model_len") if name in base}}


def _remedy(place: str) -> str:
    """Return what to do about an engine that does not list its models."""
    base = without_version(place)
    return f"give its URL without /v1, as in --engine {base}" if base else "name them with --model"


def _get_with_retry(url: str, headers: dict[str, str], wait_s: float) -> httpx2.Response:
    """Get a URL of an engine that may still be loading; retries for `wait_s` seconds."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            # Without a proxy of the environment, as requests of the server to its engines.
            with httpx2.Client(transport=httpx2.HTTPTransport()) as client:
                return client.get(url, headers=headers, timeout=LIST_LIMIT)
        except httpx2.TransportError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(RETRY)
