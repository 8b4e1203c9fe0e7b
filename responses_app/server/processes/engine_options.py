"""Options of vLLM on the command line of the server: checks before the start, and before a download."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from responses_app.engines.adapters import split_adapters
from responses_app.engines.vllm.args import InvalidEngineOption
from responses_app.engines.vllm.command_line import read_options
from responses_app.runs.models import DIALECT_KEYS
from responses_app.server.bootstrap.errors import CannotStart
from responses_app.server.bootstrap.progress import Progress
from responses_app.server.cli import model_specs
from responses_app.server.model_files.download import Download
from responses_app.server.model_files.prepare import VllmEntry


def with_options(models: str, words: Sequence[str], progress: Progress) -> str:
    """Add the options to the engine URL of the only model of RESPONSES_MODELS. Raises CannotStart.

    The values are checked for the model of a folder; `check` does this for a model that is to be downloaded.
    """

    def read(words: Sequence[str], model: str) -> Mapping[str, str]:
        with progress.step("Checking the options of vLLM"):
            entry = VllmEntry.parse(model)
            return _read(words, entry if entry and entry.is_folder else None)

    try:
        return model_specs.with_engine_options(models, words, read)
    except InvalidEngineOption as error:
        raise CannotStart(str(error)) from None


def check(words: Sequence[str], models: str, downloads: Mapping[str, Download], progress: Progress) -> None:
    """Check the values for models whose weights are still to be downloaded. Raises CannotStart with the reason of vLLM."""
    entries = [VllmEntry.parse(model) for model in models.split()] if words else []
    for entry in entries:
        if entry is not None and entry.name in downloads:
            with progress.step(f"Checking the options of vLLM for {entry.name}"):
                try:
                    _read(words, entry)
                except InvalidEngineOption as error:
                    raise CannotStart(f"{entry.name}: {error}") from None


def _read(words: Sequence[str], entry: VllmEntry | None) -> Mapping[str, str]:
    if entry is None:
        return read_options(words)
    options, _ = split_adapters({key: value for key, value in entry.options.items() if key not in DIALECT_KEYS})
    return read_options(words, Path(entry.source), options)
