"""Options of vLLM on the command line of the server: checks before the start, and before a download."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from responses_app.engines.vllm.args import InvalidEngineOption
from responses_app.engines.vllm.command_line import model_problem, read_options
from responses_app.server.bootstrap.errors import CannotStart
from responses_app.server.bootstrap.progress import Progress
from responses_app.server.cli import model_specs
from responses_app.server.model_files.download import Download


def with_options(models: str, words: Sequence[str], progress: Progress) -> str:
    """Add the options to the engine URL of the only model of RESPONSES_MODELS. Raises CannotStart."""

    def read(words: Sequence[str]) -> Mapping[str, str]:
        with progress.step("Checking the options of vLLM"):
            return read_options(words)

    try:
        return model_specs.with_engine_options(models, words, read)
    except InvalidEngineOption as error:
        raise CannotStart(str(error)) from None


def check(words: Sequence[str], downloads: Mapping[str, Download], progress: Progress) -> None:
    """Check the values for models whose weights are still to be downloaded. Raises CannotStart with the reason of vLLM."""
    if not words:
        return
    for name, download in downloads.items():
        with progress.step(f"Checking the options of vLLM for {name}"):
            if problem := model_problem(words, download.repository.snapshot):
                raise CannotStart(f"{name}: {problem}")
