"""Banner of a ready server. Secrets are printed to a terminal only, since other output may be a readable file."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from responses_app.engines.adapters import split_adapters
from responses_app.installation.data_dir import data_dir, default_data_dir, manage_command
from responses_app.server.cli.args import Options
from responses_app.server.cli.model_specs import DEMOS
from responses_app.utils.invisible import escaped

if TYPE_CHECKING:
    from responses_app.runs.models import ServedModel

# As in web.accounts.sign_in, which cannot be imported before Django is set up.
VALID_SECONDS = 15 * 60
KEY_VARIABLE = "RESPONSES_API_KEY"
DEMO_TOOLS = '{"type": "mcp", "server_label": "demo", "require_approval": "never"}'
DEMO_QUESTION = "What is the weather in Paris?"


def served() -> list[str]:
    """Return the names of the models and of their LoRA adapters in the RESPONSES_MODELS setting."""
    names: list[str] = []
    for entry in os.environ["RESPONSES_MODELS"].split():
        name, _, url = entry.partition("=")
        names += [name, *split_adapters(dict(parse_qsl(urlsplit(url).query)))[1]]
    return names


def banner(options: Options, names: Sequence[str], key: str = "", link: str = "", note: str = "") -> str:
    """Return first commands to copy. Without `key` and `link` (the sign-in path), the banner names the places of both.

    `note` says what the code interpreter still waits for.
    """
    body = f'{{"model": "{names[0]}", "input": "Hello!"}}'
    return f"""
Ready.

  base URL  {options.address}/v1
  API key   {key or _key_place()}
  models    {", ".join(names)}{_real_model(names)}
  sign in   {_sign_in(options, link)}
{f"  code      {note}{chr(10)}" if note else ""}{_demo_tools(options)}
  curl {options.address}/v1/responses -H "Authorization: Bearer {_key_in_shell()}" \\
    -H "Content-Type: application/json" -d '{body}'

Ctrl-C stops it.
"""


def _real_model(names: Sequence[str]) -> str:
    """Return how a real model is started, if the demo models alone are served."""
    return (
        f"; a real model: {os.environ.get('RESPONSES_PROG', 'bin/serve')} --model Qwen/Qwen3-0.6B"
        if set(names) <= set(DEMOS)
        else ""
    )


def model_lines(served: Iterable[ServedModel]) -> Iterator[str]:
    """Yield a line for the family of each model, and a line for each warning."""
    for model in served:
        if model.family is not None:
            yield escaped(f"{model.name}: {model.family.summary()}")
            yield from (escaped(f"{model.name}: warning: {warning}") for warning in model.family.warnings)


def sign_in_command(options: Options) -> str:
    """Return the shell command that prints a sign-in link, for any folder and an empty environment."""
    command = shlex.join([*manage_command(), "signin", "--url", options.address])
    return command if data_dir() == default_data_dir() else f"RESPONSES_DATA_DIR={shlex.quote(str(data_dir()))} {command}"


def _sign_in(options: Options, link: str) -> str:
    if not link:
        return f"{sign_in_command(options)}\n            prints a link that works once, within {VALID_SECONDS // 60} minutes"
    later = f"(once, within {VALID_SECONDS // 60} minutes; this prints another: {sign_in_command(options)})"
    return f"{options.address}{link}\n            {later}"


def _demo_tools(options: Options) -> str:
    """Return a line that says how to try the demo tools, or an empty text."""
    if not options.demo_tools:
        return ""
    more = f"            or an example prompt on the page {options.address}/chat"
    return f'  try       "input": "{DEMO_QUESTION}", "tools": [{DEMO_TOOLS}]\n{more}\n'


def _key_file() -> Path:
    return Path(os.environ.get(f"{KEY_VARIABLE}_FILE") or data_dir() / "api_key")


def _key_place() -> str:
    return f"as given in {KEY_VARIABLE}" if _is_given() else f"in {_key_file()}"


def _key_in_shell() -> str:
    return f"${KEY_VARIABLE}" if _is_given() else f"$(cat {shlex.quote(str(_key_file()))})"


def _is_given() -> bool:
    """Return True if the variable has the key. A file takes precedence over it."""
    return bool(os.environ.get(KEY_VARIABLE)) and not os.environ.get(f"{KEY_VARIABLE}_FILE")
