"""Checks of all models before a start: files, family, memory and disk; and what is to be downloaded."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from responses_app.engines.adapter_files import adapters_size, modules_problem
from responses_app.runs.models import DIALECT_KEYS
from responses_app.server.bootstrap.installed import describe_missing_libraries, describe_missing_package
from responses_app.server.bootstrap.progress import Progress
from responses_app.server.model_files import folders, repository
from responses_app.server.model_files.abilities import Abilities, read_abilities
from responses_app.server.model_files.architectures import architecture_problem
from responses_app.server.model_files.download import Download
from responses_app.server.model_files.errors import CannotServe
from responses_app.server.model_files.hub_errors import disk_too_small, explained
from responses_app.server.model_files.memory import Machine, Need, element_bytes, machine, need
from responses_app.server.model_files.repository import DEFAULT_REVISION
from responses_app.server.model_files.selection import is_listed_complete, small_files, weight_files
from responses_app.server.model_files.sizes import GIB, memory_text, size_text
from responses_app.utils.invisible import escaped

CACHE_VARIABLE = "VLLM_CPU_KVCACHE_SPACE"
# Space that a download leaves free.
DISK_MARGIN = 100 * 10**6
# Models below this size, such as the demo models, are not checked against the memory.
SMALL_WEIGHTS = 256 * 2**20


@dataclass(frozen=True, slots=True)
class VllmEntry:
    """Entry `name=vllm:///source?options` of RESPONSES_MODELS; the revision is an option, or follows an `@` in the source."""

    name: str
    source: str
    options: dict[str, str]

    @classmethod
    def parse(cls, entry: str) -> VllmEntry | None:
        """Parse an entry, None for another engine."""
        name, _, url = entry.partition("=")
        parts = urlsplit(url)
        if parts.scheme != "vllm":
            return None
        path = unquote(parts.netloc + parts.path)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        if Path(path).exists():
            return cls(name, path, options)
        source, _, revision = path.strip("/").partition("@")
        return cls(name, source, {**options, **({"revision": revision} if revision else {})})

    @property
    def is_folder(self) -> bool:
        """Return True for a folder on this machine."""
        return Path(self.source).is_dir()

    @property
    def revision(self) -> str:
        """Return the branch, tag or commit of a model on the hub."""
        return self.options.get("revision") or DEFAULT_REVISION

    def text(self) -> str:
        """Return the entry."""
        query = f"?{urlencode(self.options)}" if self.options else ""
        return f"{self.name}=vllm:///{quote(self.source.lstrip('/'))}{query}"


@dataclass(frozen=True, slots=True)
class Model:
    """Model that has been checked: the folder, the memory, and the download if files are missing."""

    entry: VllmEntry
    folder: Path
    need: Need
    abilities: Abilities
    download: Download | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """Entries of RESPONSES_MODELS with folders in place of names on the hub, and the downloads that these folders wait for."""

    setting: str
    downloads: dict[str, Download]


def prepare(setting: str, progress: Progress, fit: bool, has_gpu: Callable[[], bool]) -> Prepared:
    """Check all models of a RESPONSES_MODELS setting, and print what will happen for those of the hub. Raises CannotServe."""
    entries = [(text, VllmEntry.parse(text)) for text in setting.split()]
    parsed = [entry for _, entry in entries if entry is not None]
    for text, entry in entries:
        if entry is None:
            _check_tokenizer(text, progress)
    if not parsed:
        return Prepared(setting, {})
    if find_spec("vllm") is None:
        raise CannotServe(describe_missing_package(parsed[0].name, "vllm"))
    if missing := describe_missing_libraries():
        raise CannotServe(missing)
    gpu = has_gpu()
    checked_models = [_check(entry, gpu, progress) for entry in parsed]
    models = {model.entry.name: model for model in _fit_memory(checked_models, gpu, fit)}
    for before, model in zip(checked_models, models.values(), strict=True):
        if model.download is not None or model.entry != before.entry:
            for line in _report(model, machine(model.entry.options, gpu)):
                progress.line(escaped(line))
    _check_disk(list(models.values()))
    downloads = {name: model.download for name, model in models.items() if model.download is not None}
    texts = [
        models[entry.name].entry.text() if entry is not None and models[entry.name].entry != entry else text
        for text, entry in entries
    ]
    return Prepared(" ".join(texts), downloads)


def with_options_of(entry: str, prepared: str) -> str:
    """Return an entry with the source of `entry` and the options of `prepared`, such as a smaller context."""
    before, after = VllmEntry.parse(entry), VllmEntry.parse(prepared)
    if before is None or after is None:
        return entry
    return replace(before, options={**before.options, **after.options}).text()


def small_snapshot(name: str, revision: str = "", note: Callable[[str], object] = lambda _: None) -> Path:
    """Return the folder of a model of the hub in the cache, at least with the small files; `note` gets the pauses. Raises CannotServe."""
    entry = VllmEntry(name, name, {"revision": revision} if revision else {})
    if (folder := _complete_snapshot(entry)) is not None:
        return folder
    with explained(name, entry.revision):
        listed = repository.list_repository(name, entry.revision, note)
        if problem := folders.listed_kind_problem(listed):
            raise CannotServe(f"{listed.name} {problem}.")
        Download(listed, small_files(listed.files), note=note).run()
    return listed.snapshot


def _check_tokenizer(entry: str, progress: Progress) -> None:
    """Check the folder of a tokenizer, or ask the hub once for one that is not in the cache. Raises CannotServe."""
    name, _, url = entry.partition("=")
    source = dict(parse_qsl(urlsplit(url).query)).get("tokenizer", "")
    if source and Path(source).exists():
        if problem := folders.tokenizer_problem(Path(source)):
            raise CannotServe(f"{name}: tokenizer {source} {problem}.")
    elif source and not repository.storage(source).exists():
        if source.startswith((".", "/", "~")):
            raise CannotServe(f"{name}: tokenizer {source}: there is no such folder.")
        with explained(f"{name}: tokenizer {source}", DEFAULT_REVISION):
            repository.list_repository(source, DEFAULT_REVISION, progress.note)


def _check(entry: VllmEntry, gpu: bool, progress: Progress) -> Model:
    """Check the files of a model; download the small files of a model on the hub."""
    if entry.is_folder:
        return _checked(entry, Path(entry.source), None, gpu)
    if (folder := _complete_snapshot(entry)) is not None:
        return _checked(_in_folder(entry, folder), folder, None, gpu)
    with explained(entry.source, entry.revision):
        with progress.step(f"Looking up {entry.source} at {repository.endpoint()}"):
            listed = repository.list_repository(entry.source, entry.revision, progress.note)
        if problem := folders.listed_kind_problem(listed):
            raise CannotServe(f"{listed.name} {problem}.")
        Download(listed, small_files(listed.files), note=progress.note).run()
    weights = weight_files(listed.files, listed.snapshot)
    if problem := folders.listed_weights_problem(listed, weights, bool(entry.options.get("load_format"))):
        raise CannotServe(f"{entry.source} {problem}.")
    download = Download(listed, (*small_files(listed.files), *weights))
    return _checked(_in_folder(entry, listed.snapshot), listed.snapshot, download, gpu)


def _complete_snapshot(entry: VllmEntry) -> Path | None:
    """Return the folder of a model that is complete in the cache of the hub's library; no request is made."""
    folder = repository.cached_snapshot(entry.source, entry.revision)
    if folder is None or folders.folder_problem(folder) or not is_listed_complete(entry.source, folder):
        return None
    return folder


def _in_folder(entry: VllmEntry, folder: Path) -> VllmEntry:
    options = {name: value for name, value in entry.options.items() if name != "revision"}
    return replace(entry, source=str(folder), options=options)


def _checked(entry: VllmEntry, folder: Path, download: Download | None, gpu: bool) -> Model:
    """Check the folder, whose weights may be missing while there is a download."""
    has_weights = download is None and entry.options.get("load_format", "auto") == "auto"
    place, advice = (
        (str(folder), folders.COPY_AGAIN) if download is None else (download.repository.name, download.repository.advice)
    )
    if problem := folders.folder_problem(folder) if has_weights else folders.kind_problem(folder, advice):
        raise CannotServe(f"{place} {problem}.")
    config = folders.read_object(folder / "config.json")
    if problem := architecture_problem(config):
        raise CannotServe(f"{entry.name}: {problem}.")
    size = folders.weights_size(folder) if download is None else download.weights_size
    options = {name: value for name, value in entry.options.items() if name not in DIALECT_KEYS}
    kind = "GPU" if gpu else "CPU"
    if problem := modules_problem(folder, options):
        raise CannotServe(f"{entry.name}: {problem}.")
    try:
        adapters = adapters_size(folder, options, element_bytes(options), kind)
        needed = replace(need(config, size, options, kind), adapters=adapters)
        abilities = read_abilities(folder, entry.options, config) if download is not None else Abilities()
    except (ValueError, OSError) as error:
        text = str(error).replace(str(folder), place)
        raise CannotServe(text if text.startswith(place) else f"{place}: {text}") from error
    return Model(entry, folder, needed, abilities, download)


def _fit_memory(models: Sequence[Model], gpu: bool, fit: bool) -> list[Model]:
    """Check that all models fit into the memory together; with `fit` choose smaller contexts. Raises CannotServe."""
    free = machine(models[0].entry.options, gpu)
    fitted: list[Model] = []
    for model in models:
        left = replace(free, free=free.free - sum(one.need.total(one.need.context, free.kind) for one in fitted))
        fitted.append(_fit(model, left, fit, fitted))
    if free.kind == "CPU" and CACHE_VARIABLE not in os.environ:
        gib = max(one.need.cache(one.need.context, "CPU") for one in fitted) // GIB
        if gib > 1:
            os.environ[CACHE_VARIABLE] = str(gib)
            return [_with_context(one, one.need.context) for one in fitted]
    return fitted


def _fit(model: Model, left: Machine, fit: bool, before: Sequence[Model]) -> Model:
    needed = model.need
    if needed.weights < SMALL_WEIGHTS and needed.cache(needed.context, left.kind) <= GIB:
        left = replace(left, free=max(left.free, needed.total(needed.context, left.kind)))
    if needed.fits(needed.context, left):
        return model
    largest = needed.largest_context(left)
    if largest and (fit or model.entry.options.get("max_model_len") in ("auto", "-1")):
        return _with_context(model, largest)
    beside = f" beside {', '.join(one.entry.name for one in before)}" if before else ""
    problem = (
        f"{model.entry.name} needs {needed.sum_text(left)} of memory for {needed.context:,} tokens of context, and this {left.kind} "
        f"has {memory_text(max(left.free, 0))} free{beside}"
    )
    if needed.cache_bytes is not None and needed.attention.size(needed.context) > needed.cache_bytes:
        problem = (
            f"{model.entry.name} needs {memory_text(needed.attention.size(needed.context))} of KV cache for {needed.context:,} tokens "
            f"of context, and {memory_text(needed.cache_bytes)} are set ({CACHE_VARIABLE} or kv_cache_memory_bytes)"
        )
    if largest:
        raise CannotServe(f"{problem}. {largest:,} tokens fit: add --fit, or ?max_model_len={largest} to the engine URL.")
    alone = " These models fit together: " + ", ".join(one.entry.name for one in before) + "." if before else ""
    raise CannotServe(f"{problem}. Not even a short context fits: choose a smaller or quantized model, or free memory.{alone}")


def _with_context(model: Model, context: int) -> Model:
    entry = replace(model.entry, options={**model.entry.options, "max_model_len": str(context)})
    return replace(model, entry=entry, need=replace(model.need, context=context))


def _check_disk(models: Sequence[Model]) -> None:
    missing = sum(model.download.total - model.download.done for model in models if model.download is not None)
    if not missing:
        return
    free = shutil.disk_usage(_existing(repository.cache())).free
    if missing + DISK_MARGIN > free:
        raise CannotServe(disk_too_small(missing, free))


def _existing(folder: Path) -> Path:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _report(model: Model, free: Machine) -> Iterator[str]:
    """Yield what will happen: family, abilities, context, download, disk and memory."""
    needed, download = model.need, model.download
    yield f"{model.entry.name}"
    if download is not None:
        origin = download.repository
        yield f"  from      {repository.endpoint()}/{origin.name} at {origin.revision} (commit {origin.commit[:12]})"
    yield from (f"  {line}" for line in model.abilities.lines())
    declared = f" of {needed.declared:,}" if needed.declared != needed.context else ""
    yield f"  context   {needed.context:,} tokens{declared}"
    if download is not None:
        there = f", {size_text(download.done)} of them are there" if download.done else ""
        files = "1 file" if len(download.files) == 1 else f"{len(download.files)} files"
        yield f"  download  {size_text(download.total)} in {files}{there}"
        yield f"  disk      {size_text(shutil.disk_usage(_existing(repository.cache())).free)} free at {repository.cache()}"
    yield f"  memory    {needed.sum_text(free)}, of {memory_text(free.free)} free ({free.kind})"
