"""Connection of a client to the server: address, key and model; and the files that configure the client."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from responses_app.connect.facts import ModelFacts

KEY_VARIABLE = "VERBATIM_API_KEY"


@dataclass(frozen=True, slots=True)
class Connection:
    """Connection of a client. `base_url` ends with `/v1`."""

    base_url: str
    key: str
    model: ModelFacts

    @property
    def root(self) -> str:
        """Return the address without `/v1`."""
        return self.base_url.removesuffix("/v1")


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """Configuration file of a client. `edit` changes the content, and raises CannotEdit; a new file has the content ""."""

    path: Path
    edit: Callable[[str], str]
    is_secret: bool = False


@dataclass(frozen=True, slots=True)
class Agent:
    """Client that can be connected.

    `files` returns the files for a connection, below the home folder and by the environment. `variables` are environment variables
    that the client needs. `start` shows how the client is started. `check` makes the body of a request as the client sends it.
    """

    name: str
    title: str
    files: Callable[[Connection, Path, Mapping[str, str]], Sequence[ConfigFile]]
    start: str
    variables: Callable[[Connection], Mapping[str, str]] = field(default=lambda _: {})
    note: str = ""
    # Tokens of the first prompt, with a large vocabulary.
    first_prompt: int = 0

    def context_problem(self, context_window: int) -> str | None:
        """Return a sentence if the first prompt takes more than half of the context window, else None."""
        if context_window >= 2 * self.first_prompt:
            return None
        return (
            f"{self.title} begins with a prompt of about {self.first_prompt:,} tokens, so {context_window:,} tokens of context"
            " are soon full."
        )


def config_home(home: Path, environ: Mapping[str, str]) -> Path:
    """Return the folder of configurations by the XDG base directory specification."""
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config")


def replace_with(content: str) -> Callable[[str], str]:
    """Return an edit for a file that belongs to this program as a whole."""
    return lambda _: content
