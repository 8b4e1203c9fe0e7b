"""`manage.py createkey NAME`: creates an API key and prints the key once."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from responses_app.management.arguments import text_up_to, tool_name
from responses_app.management.base import DatabaseCommand
from responses_app.management.commands.projectlimits import NO_PRICES
from responses_app.models import ApiKey
from responses_app.models.keys import (
    MAX_CONCURRENT,
    MAX_NAME,
    MAX_OUTPUT_TOKENS,
    MAX_REQUESTS_PER_MINUTE,
    MAX_RUN_SECONDS,
    MIN_OUTPUT_TOKENS,
)
from responses_app.models.limits.fields import MAX_MODEL_NAME
from responses_app.server.bootstrap.first_api_key import unshared_secret_key
from responses_app.store import audit_log

LIMITS = ("requests_per_minute", "max_concurrent", "default_output_tokens", "max_output_tokens", "max_run_seconds")
# Limits that a project has too, with the options of `manage.py projectlimits`.
USAGE_LIMITS = ("tokens_per_minute", "tokens_per_day", "spend_per_month", "tool_calls_per_day", "retention_days")
OUTPUT_TOKENS = {
    "--default-output-tokens": "output tokens of a response whose request names no number (default: that of the model)",
    "--max-output-tokens": "limit on the output tokens of a response (default: no limit)",
}


class Command(DatabaseCommand):
    """Command `createkey`."""

    help = "Create an API key and print it. It can’t be shown again: only a hash is stored."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments of the command."""
        parser.add_argument("name", type=text_up_to(MAX_NAME), help="name of the key, such as CI")
        parser.add_argument(
            "--project", type=text_up_to(MAX_NAME), help="keys in the same project share responses (default: the name)"
        )
        parser.add_argument(
            "--requests-per-minute",
            type=_upto(MAX_REQUESTS_PER_MINUTE),
            metavar="N",
            help="limit on requests to models (default: no limit)",
        )
        parser.add_argument(
            "--at-a-time",
            dest="max_concurrent",
            type=_upto(MAX_CONCURRENT),
            metavar="N",
            help="limit on concurrent responses (default: no limit)",
        )
        parser.add_argument(
            "--model",
            type=text_up_to(MAX_MODEL_NAME),
            action="append",
            default=[],
            help="allow only this model; repeat to allow several (default: all models)",
        )
        parser.add_argument(
            "--tool",
            action="append",
            default=[],
            type=tool_name,
            help="allow only this tool of the server; repeat to allow several: "
            "code_interpreter, file_search, web_search, mcp:LABEL, mcp, or none (default: all tools)",
        )
        for option, help_text in OUTPUT_TOKENS.items():
            parser.add_argument(option, type=_upto(MAX_OUTPUT_TOKENS, MIN_OUTPUT_TOKENS), metavar="N", help=help_text)
        parser.add_argument(
            "--max-run-seconds",
            type=_upto(MAX_RUN_SECONDS),
            metavar="N",
            help="limit on the running time of a response (default: no limit)",
        )
        for name in USAGE_LIMITS:
            field = ApiKey._meta.get_field(name)
            help_text = str(getattr(field, "help_text", "")).replace("Leave blank for", "Default:")
            parser.add_argument(f"--{name.replace('_', '-')}", metavar="N", help=help_text)

    def handle(self, *_args: Any, name: str, project: str | None, model: list[str], tool: list[str], **limits: Any) -> None:
        """Run the command."""
        limits_given = {field: limits[field] for field in LIMITS} | _usage_limits(limits)
        key, secret = ApiKey.make(name, project, None, **limits_given, allowed_models=model, allowed_tools=tool)
        audit_log.record(audit_log.command(), "key.create", f"key {key.pk} {key}", key.project)
        self.stdout.write(secret)
        if problem := unshared_secret_key():
            self.stderr.write(f"WARNING: {problem}")
        if key.spend_per_month is not None and not settings.RESPONSES_PRICES:
            self.stderr.write(NO_PRICES)


def _usage_limits(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked values of the given options of USAGE_LIMITS. Raises CommandError."""
    limits = {}
    for name in USAGE_LIMITS:
        if options[name] is not None:
            try:
                limits[name] = ApiKey._meta.get_field(name).clean(options[name], None)  # type: ignore[union-attr]
            except ValidationError as error:
                raise CommandError(f"{name}: {' '.join(error.messages)}") from error
    return limits


def _upto(most: int, least: int = 1) -> Any:
    def whole(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise ArgumentTypeError(f"must be a whole number from {least} to {most}, not {text!r}")
        return int(text)

    return whole
