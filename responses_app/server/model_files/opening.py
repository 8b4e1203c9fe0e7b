"""Opening of models: downloads, also while the server listens already."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from responses_app.server.bootstrap.progress import Progress
from responses_app.server.model_files import repository
from responses_app.server.model_files.download import Download
from responses_app.server.model_files.errors import CannotServe
from responses_app.server.model_files.folders import weights_problem
from responses_app.server.model_files.selection import WEIGHT_SUFFIXES

if TYPE_CHECKING:
    from responses_app.runs.manager import RunManager


KEPT = "What is downloaded is kept; the next start goes on there."


def download_all(downloads: Mapping[str, Download], progress: Progress) -> None:
    """Download the models one after another. Raises CannotServe, and DownloadStopped after `stop` of a download."""
    for name, download in downloads.items():
        try:
            with progress.step(f"Downloading {name}", download.detail):
                download.run()
                _check_weights(name, download)
        except KeyboardInterrupt:
            progress.line(KEPT)
            raise
    if downloads:
        repository.go_offline()


def _check_weights(name: str, download: Download) -> None:
    """Raise CannotServe for weights that are damaged on the hub, as the engine's error would name no file."""
    repository = download.repository
    if any(file.path.endswith(WEIGHT_SUFFIXES) for file in download.files) and (
        problem := weights_problem(repository.snapshot, repository.advice)
    ):
        raise CannotServe(f"{name}: {repository.name} {problem}.")


def hold(hub: RunManager, downloads: Mapping[str, Download]) -> None:
    """Have the manager refuse requests until `open_models` has ended, and show how far the downloads are."""
    hub.opening = True
    for name, download in downloads.items():
        hub.served[name].downloaded = download.get_percent


async def open_models(
    hub: RunManager, downloads: Mapping[str, Download], start: Callable[[], Awaitable[None]], progress: Progress
) -> None:
    """Download the models, then start the engines with `start`. Raises CannotServe, and the exceptions of `start`."""
    # The small files are there, and with these the family of each model.
    for model in hub.served.values():
        await model.open()
    downloading = asyncio.get_running_loop().run_in_executor(None, download_all, downloads, progress)
    try:
        await downloading
    finally:
        for download in downloads.values():
            download.stop()
        if not downloading.done() or downloading.cancelled():
            progress.line(KEPT)
    await start()
    hub.opening = False
