"""Wait of a run for the packages that the code imports, while another process installs them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

from responses_app.sandbox import bubblewrap
from responses_app.sandbox.base import RunResult
from responses_app.sandbox.installation import IMPORT_NAMES, InstallationState

POLL_S = 0.2
WAIT_LIMIT_S = 300.0
MISSING = "ModuleNotFoundError"


@dataclass(frozen=True, slots=True)
class PackageWait:
    """Packages in `folder`, which the runner sees; the default is the folder of the sandbox."""

    folder: Path = Path(bubblewrap.INSTALLATION)
    limit_s: float = WAIT_LIMIT_S

    async def wait_for(self, code: str) -> None:
        """Wait while packages are installed that `code` imports. Other code does not wait, nor does any code after a failure."""
        if self._is_complete() or not IMPORT_NAMES.search(code):
            return
        deadline = asyncio.get_running_loop().time() + self.limit_s
        # Another process writes the file, and no notification passes into the sandbox.
        while self._is_installing() and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)

    def explained(self, result: RunResult) -> RunResult:
        """Return the result, with a sentence about the installation where a package was missing."""
        error = result.error
        if error is None or MISSING not in error or not IMPORT_NAMES.search(error) or self._is_complete():
            return result
        state = InstallationState.read(self.folder)
        if state is None:
            return result
        return replace(result, error=f"{error}\nThe packages numpy, pandas, matplotlib and pillow are {state.sentence()}.")

    def _is_complete(self) -> bool:
        return (self.folder / "shared" / "site").exists()

    def _is_installing(self) -> bool:
        state = InstallationState.read(self.folder)
        return state is not None and state.is_running and not self._is_complete()
