"""Registry of served models: name, engine and dialect."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from responses_app.dialects.base import Dialect
from responses_app.dialects.checkpoint import Checkpoint
from responses_app.dialects.families.detection import Detection
from responses_app.dialects.families.parser_names import check_names
from responses_app.dialects.registry import open_checkpoint
from responses_app.dialects.sampling_defaults import SamplingDefaults
from responses_app.engine_interface import Engine, EngineUnavailable, EngineUnreachable
from responses_app.engines.adapters import PREFIX, AdapterEngine, split_adapters
from responses_app.engines.registry import SCHEMES, open_engine, unknown_scheme
from responses_app.engines.urls import engine_host
from responses_app.errors import InvalidRequest

logger = logging.getLogger("responses.models")

STOP_LIMIT = 5.0
# Characters of an unknown name that an error shows.
LONGEST_NAME = 200
# Settings with numbers by model.
LIMITS_BY_MODEL = (
    "RESPONSES_MAX_OUTPUT_TOKENS",
    "RESPONSES_DEFAULT_OUTPUT_TOKENS",
    "RESPONSES_MAX_RUN_SECONDS",
    "RESPONSES_PRICES",
)
# Query keys of an engine URL that concern the dialect; the engine gets the others.
DIALECT_KEYS = frozenset({"tokenizer", "reasoning_parser", "tool_parser", "chat_template"})


@dataclass(slots=True)
class ServedModel:
    """Served model. `engine` is running and `dialect` is loaded once the run manager has started."""

    name: str
    engine: Engine
    source: str
    parsers: Mapping[str, str]
    defaults: SamplingDefaults = field(default_factory=SamplingDefaults)
    created: int = field(default_factory=lambda: int(time.time()))
    dialect: Dialect | None = None
    # The detected family and its parsers; None until the dialect is loaded.
    family: Detection | None = None
    # The base model of a LoRA adapter; None for a model of its own.
    base: ServedModel | None = None
    # The name of the base model, also of an adapter of an engine by URL; "" for a model of its own.
    parent: str = ""
    # Returns how much of the weights is downloaded, in percent; None for a model that is on this machine.
    downloaded: Callable[[], int] | None = None

    @property
    def context_window(self) -> int | None:
        """Return the tokens of prompt and output together; None as long as the engine has not started."""
        try:
            return self.engine.max_model_len
        except EngineUnavailable:
            return None

    @property
    def efforts(self) -> Sequence[str]:
        """Return the values of `reasoning.effort` that make a difference; empty if the model does not reason."""
        return () if self.dialect is None else self.dialect.efforts

    @property
    def supports_images(self) -> bool:
        """Return True if the files, the template and the engine of the model all take images."""
        return self.dialect is not None and self.dialect.supports_images and self.engine.supports_images

    @property
    def may_take_images(self) -> bool:
        """Return `supports_images`; while the engine is away, what the files and the template say."""
        try:
            return self.supports_images
        except EngineUnavailable:
            return self.dialect is not None and self.dialect.supports_images

    def temperature(self, requested: float | None) -> float:
        """Return the effective temperature: the requested temperature, or the default of the model."""
        return self.defaults.temperature if requested is None else requested

    def top_p(self, requested: float | None) -> float:
        """Return the effective top_p: the requested top_p, or the default of the model."""
        return self.defaults.top_p if requested is None else requested

    def top_k(self, requested: int | None) -> int:
        """Return the effective top_k: the requested top_k, or the default of the model."""
        return self.defaults.top_k if requested is None else requested

    def min_p(self, requested: float | None) -> float:
        """Return the effective min_p: the requested min_p, or the default of the model."""
        return self.defaults.min_p if requested is None else requested

    def repetition_penalty(self, requested: float | None) -> float:
        """Return the effective repetition penalty: the requested penalty, or the default of the model."""
        return self.defaults.repetition_penalty if requested is None else requested

    def max_output_tokens(self, requested: int | None) -> int | None:
        """Return the effective limit of the output in tokens: the requested limit, or the default of the model."""
        return self.defaults.max_new_tokens if requested is None else requested

    async def engine_states(self) -> Mapping[tuple[str, str], bool]:
        """Return whether each engine is up, by the name of the model and the host and port of the engine, else `local`."""
        members = getattr(self.engine, "statuses", None)
        if members is not None:
            return {(self.name, urlsplit(member.name).netloc): member.is_up for member in members}
        return {(self.name, engine_host(self.engine)): await self.engine.is_healthy()}

    async def open(self) -> None:
        """Load the dialect. Models load in sequence, because two threads cannot import transformers. Raises ValueError, OSError."""
        self.dialect = await asyncio.to_thread(self._open)

    def _open(self) -> Dialect:
        if self.dialect is not None:
            return self.dialect
        if self.base is not None and self.base.dialect is not None:
            self.family, self.defaults = self.base.family, self.base.defaults
            return self.base.dialect
        parsers = self.parsers
        checkpoint = Checkpoint(self.source, parsers.get("chat_template"))
        # Of a hub name, which has no folder to read before.
        self.defaults = SamplingDefaults.read(checkpoint.path("generation_config.json"))
        self.family = checkpoint.detect_family(parsers.get("reasoning_parser"), parsers.get("tool_parser"))
        try:
            dialect, self.family = open_checkpoint(checkpoint, self.family)
        finally:
            logger.info("%s: %s", self.name, self.family.summary())
            for warning in filter(None, (*self.family.warnings, self.defaults.warning)):
                logger.warning("%s: %s", self.name, warning)
        return dialect


def opening_state(model: ServedModel) -> str:
    """Return a sentence about a model that is not ready yet."""
    percent = model.downloaded() if model.downloaded is not None else 100
    return f"The model '{model.name}' is being {f'downloaded ({percent} %)' if percent < 100 else 'loaded'}"


def parse_models(models: str) -> dict[str, ServedModel]:
    """Parse a RESPONSES_MODELS setting: `name=engine-url`, separated by white space. Raises ImproperlyConfigured."""
    served = {}
    for entry in models.split():
        name, sep, url = entry.partition("=")
        if not sep or not name or "://" not in url:
            raise ImproperlyConfigured(f"RESPONSES_MODELS: {entry!r} must be name=engine-url, as in demo=vllm:///models/demo")
        for model in _served(name, url):
            if model.name in served:
                raise ImproperlyConfigured(f"RESPONSES_MODELS: two models or adapters are called {model.name!r}")
            served[model.name] = model
    return served


def models_from_settings() -> tuple[dict[str, ServedModel], dict[str, str]]:
    """Return the models and the aliases of the settings. Raises ImproperlyConfigured."""
    served = parse_models(settings.RESPONSES_MODELS)
    aliases = parse_aliases(settings.RESPONSES_ALIASES, served)
    for name in LIMITS_BY_MODEL:
        check_limits(name, getattr(settings, name), served)
    check_default(settings.RESPONSES_DEFAULT_MODEL, served, aliases)
    return served, aliases


def parse_aliases(text: str, served: Mapping[str, ServedModel]) -> dict[str, str]:
    """Parse a RESPONSES_ALIASES setting: `name=model`, with `*` as a wildcard in `name`. Raises ImproperlyConfigured."""
    names_by_alias = {}
    for entry in text.split():
        name, sep, model = entry.rpartition("=")
        if not sep or not name or model not in served:
            known = ", ".join(served) or "none"
            raise ImproperlyConfigured(
                f"RESPONSES_ALIASES: {entry!r} must be name=model, with a model that is served ({known})"
            )
        names_by_alias[name] = model
    return names_by_alias


def check_limits(setting: str, limits: Mapping[str, object], served: Mapping[str, ServedModel]) -> None:
    """Check that a setting with limits or prices by model names served models. Raises ImproperlyConfigured."""
    if unknown := [name for name in limits if name and name not in served]:
        raise ImproperlyConfigured(f"{setting}: {unknown[0]!r} is not a model that is served ({', '.join(served) or 'none'})")


def check_default(name: str, served: Mapping[str, ServedModel], aliases: Mapping[str, str]) -> None:
    """Check that the RESPONSES_DEFAULT_MODEL setting is empty, a served model or an alias. Raises ImproperlyConfigured."""
    if name and resolve_alias(name, served, aliases) is None:
        known = ", ".join([*served, *aliases]) or "none"
        raise ImproperlyConfigured(f"RESPONSES_DEFAULT_MODEL: {name!r} must be a served model or an alias of one ({known})")


def resolve_alias(name: str, served: Mapping[str, ServedModel], aliases: Mapping[str, str]) -> ServedModel | None:
    """Return the model with the name `name`, or with such an alias, or with the first pattern that matches."""
    known = served.get(name) or served.get(aliases.get(name, ""))
    patterns = (model for alias, model in aliases.items() if "*" in alias and fnmatchcase(name, alias))
    return known or served.get(next(patterns, ""))


def find_model(name: str, served: Mapping[str, ServedModel], aliases: Mapping[str, str]) -> ServedModel:
    """Return the model with the name or alias `name`. Raises InvalidRequest `model_not_found` (status 400)."""
    model = resolve_alias(name, served, aliases)
    if model is None:
        shown_name = name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"
        raise InvalidRequest(f"The requested model '{shown_name}' does not exist.", param="model", code="model_not_found")
    return model


def _served(name: str, url: str) -> list[ServedModel]:
    """Return the model of an entry, then the LoRA adapters, which share the engine. Raises ImproperlyConfigured."""
    base, _, parameters = url.partition("?")
    query, adapters = split_adapters(dict(parse_qsl(parameters)))
    if adapters and urlsplit(base).scheme not in ("vllm", "unix"):
        raise ImproperlyConfigured(
            f"RESPONSES_MODELS: {name}: the keys {PREFIX}NAME are for engines in this server; give the adapters to that engine, "
            "and serve each as a model of its name"
        )
    parsers = {key: query.pop(key) for key in list(query) if key in DIALECT_KEYS}
    parent = query.pop("parent", "") if base.startswith("http") else ""
    source = parsers.pop("tokenizer", None) or _source(name, urlsplit(base))
    try:
        check_names(parsers.get("reasoning_parser"), parsers.get("tool_parser"))
        # An engine worker has its adapters from its own command line.
        more = {f"{PREFIX}{adapter}": folder for adapter, folder in adapters.items() if base.startswith("vllm:")}
        engine = open_engine(f"{base}?{urlencode({**query, **more})}" if query or more else base)
    except ValueError as error:
        raise ImproperlyConfigured(f"RESPONSES_MODELS: {name}: {error}") from error
    except OSError as error:
        raise ImproperlyConfigured(
            f"RESPONSES_MODELS: {name}: the file of the engine URL cannot be read ({error}); correct the path"
        ) from error
    try:
        defaults = SamplingDefaults.read(Path(source) / "generation_config.json")
    except ValueError as error:
        raise ImproperlyConfigured(str(error)) from error
    model = ServedModel(name, engine, source, parsers, defaults, parent=parent)
    shared = [
        ServedModel(adapter, AdapterEngine(engine, adapter), source, parsers, model.defaults, base=model, parent=name)
        for adapter in adapters
    ]
    return [model, *shared]


def _source(name: str, parts: SplitResult) -> str:
    """Return the place of the tokenizer: a folder for `vllm:///models/x`, a hub model for `vllm:///org/name` and `vllm://org/name`."""
    if parts.scheme not in SCHEMES:
        raise ImproperlyConfigured(f"RESPONSES_MODELS: {name}: {unknown_scheme(parts.scheme)}")
    if parts.scheme != "vllm":
        raise ImproperlyConfigured(f"RESPONSES_MODELS: {name}: a {parts.scheme}:// engine needs &tokenizer=folder-or-hub-name")
    path = unquote(parts.netloc + parts.path)
    return path if Path(path).exists() else path.lstrip("/")


async def start_all(served: Mapping[str, ServedModel]) -> None:
    """Open all dialects, then start all engines side by side.

    Raises EngineUnavailable, which names the model. Then, as when this is cancelled, no engine is left that came up.
    """
    starts: list[asyncio.Task[None]] = []
    try:
        for one in served.values():
            logger.info("starting %s", one.name)
            await _named(one, one.open)
        starts += [asyncio.create_task(_named(one, one.engine.start)) for one in served.values()]
        await asyncio.gather(*starts)
    except BaseException:
        for start in starts:
            start.cancel()
        if starts:
            await asyncio.wait(starts, timeout=STOP_LIMIT)
        for one in served.values():
            await one.engine.close()
        raise


async def _named(served: ServedModel, step: Callable[[], Awaitable[None]]) -> None:
    """Run a step of the start of a model; any error names the model."""
    try:
        await step()
    except EngineUnreachable as error:
        raise EngineUnreachable(f"{served.name}: {error}") from error
    except Exception as error:  # A model may bring its own code, which may raise anything.
        raise EngineUnavailable(f"{served.name}: {error}") from error
