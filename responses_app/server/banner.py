"""What `bin/serve` says when it is ready."""

from __future__ import annotations

import os
from collections.abc import Sequence

from responses_app.server.args import Options


def served() -> list[str]:
    """The names of the models of the RESPONSES_MODELS setting."""
    return [entry.partition("=")[0] for entry in os.environ["RESPONSES_MODELS"].split()]


def banner(options: Options, key: str, names: Sequence[str]) -> str:
    """What to do now, to be copied."""
    body = f'{{"model": "{names[0]}", "input": "Hello!"}}'
    return f"""
Ready.

  base URL  {options.address}/v1
  API key   {key}
  models    {", ".join(names)}
  admin     {options.address}/admin/ (make an account first: .venv/bin/python manage.py createsuperuser)

  curl {options.address}/v1/responses -H "Authorization: Bearer {key}" \\
    -H "Content-Type: application/json" -d '{body}'

Ctrl-C stops it.
"""
