"""`manage.py model MODEL`: prints the family of a model, its parsers and the features of its chat template."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from responses_app.installation.data_dir import data_dir
from responses_app.server.cli.model_specs import DEMOS, InvalidModelSpec, local_source, parse_spec
from responses_app.utils.invisible import escaped


class Command(BaseCommand):
    """Command `model`."""

    help = "Print the family of a model, its parsers, and the features of its chat template. No engine is needed."
    requires_system_checks: list[str] = []  # noqa: RUF012 (so declared by Django)

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments of the command."""
        parser.add_argument("model", help=f"folder with a checkpoint, name on the model hub, or {', '.join(DEMOS)}")
        parser.add_argument(
            "--reasoning-parser", metavar="NAME", help="reasoning parser (names of vLLM), or none (default: detected)"
        )
        parser.add_argument("--tool-parser", metavar="NAME", help="tool parser (names of vLLM), or none (default: detected)")
        parser.add_argument("--chat-template", metavar="FILE", help="chat template in place of the model's own")

    def handle(
        self,
        *_args: Any,
        model: str,
        reasoning_parser: str | None,
        tool_parser: str | None,
        chat_template: str | None,
        **_options: Any,
    ) -> None:
        """Run the command."""
        # transformers warns about defaults of a family that the model does not have.
        os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
        try:
            source = local_source(parse_spec(model).source, _build)
        except InvalidModelSpec as error:
            raise CommandError(f"{error}.") from error
        if Path(source).is_dir():
            os.environ.setdefault("HF_HUB_OFFLINE", "1")
        else:
            source = _downloaded(source, self.stderr.write)
        from responses_app.dialects.report import report

        try:
            lines = list(report(source, reasoning_parser, tool_parser, chat_template).lines())
        except Exception as error:  # The files of a model can break the libraries that read the files in any way.
            raise CommandError(f"{model} cannot be opened: {_first_line(error)}") from error
        for line in lines:
            self.stdout.write(escaped(line))


def _build(name: str) -> Path:
    from responses_app.demo.build import build

    return build(name, data_dir() / "models")


def _downloaded(name: str, note: Callable[[str], object]) -> str:
    """Download the small files of a model of the hub, and return their folder; `note` gets pauses. Raises CommandError."""
    from responses_app.server.model_files.errors import CannotServe
    from responses_app.server.model_files.prepare import small_snapshot

    name, _, revision = name.partition("@")
    try:
        return str(small_snapshot(name, revision, note))
    except CannotServe as error:
        raise CommandError(escaped(str(error))) from error


def _first_line(error: Exception) -> str:
    text = str(error).strip().partition("\n")[0]
    return escaped(text) or type(error).__name__
