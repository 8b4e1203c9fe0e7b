"""What `bin/serve` says when it is ready."""

from __future__ import annotations

import os
from collections.abc import Sequence

from responses_app.server.args import Options

# As in web.sign_in, which cannot be imported before Django is set up.
VALID_SECONDS = 15 * 60


def served() -> list[str]:
    """The names of the models of the RESPONSES_MODELS setting."""
    return [entry.partition("=")[0] for entry in os.environ["RESPONSES_MODELS"].split()]


def banner(options: Options, key: str, names: Sequence[str], link: str) -> str:
    """What to do now, to be copied. `link` is the path that signs the operator in."""
    body = f'{{"model": "{names[0]}", "input": "Hello!"}}'
    return f"""
Ready.

  base URL  {options.address}/v1
  API key   {key}
  models    {", ".join(names)}
  sign in   {options.address}{link}
            (once, within {VALID_SECONDS // 60} minutes; later, .venv/bin/python manage.py signin prints another)

  curl {options.address}/v1/responses -H "Authorization: Bearer {key}" \\
    -H "Content-Type: application/json" -d '{body}'

Ctrl-C stops it.
"""
