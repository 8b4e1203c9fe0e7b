"""`manage.py projectlimits NAME`: sets the limits and the retention of a project, and prints these."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from responses_app.management.arguments import text_up_to, tool_name
from responses_app.management.base import DatabaseCommand
from responses_app.models import ApiKey, Membership, Project
from responses_app.models.limits.fields import MAX_MODEL_NAME
from responses_app.store import audit_log

FIELDS = ("tokens_per_minute", "tokens_per_day", "spend_per_month", "tool_calls_per_day", "storage_mib", "retention_days")
LISTS = ("allowed_models", "allowed_tools")
NO_PRICES = "WARNING: RESPONSES_PRICES is empty here, so responses cost nothing and no spend is limited."


class Command(DatabaseCommand):
    """Command `projectlimits`."""

    help = "Set limits of a project and print all limits of the project. 0 removes a limit, and a list of models or tools."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments of the command."""
        parser.add_argument("name", help="name of the project")
        for name in FIELDS:
            field = Project._meta.get_field(name)
            parser.add_argument(f"--{name.replace('_', '-')}", metavar="N", help=str(getattr(field, "help_text", "")))
        for option, dest, kind in (("model", "allowed_models", text_up_to(MAX_MODEL_NAME)), ("tool", "allowed_tools", _tool)):
            help_text = f"allow only this {option}, besides the limits of keys; repeat to allow several (default: as before)"
            parser.add_argument(f"--{option}", dest=dest, type=kind, action="append", help=help_text)

    def handle(self, *_args: Any, name: str, **options: Any) -> None:
        """Run the command."""
        project = Project.objects.filter(name=name).first() or Project(name=name)
        changes = {field: options[field] for field in (*FIELDS, *LISTS) if options[field] is not None}
        for field, value in changes.items():
            setattr(project, field, None if value == "0" else [] if value == ["0"] else value)
        try:
            project.full_clean()
        except ValidationError as error:
            raise CommandError(
                "; ".join(f"{field}: {' '.join(texts)}" for field, texts in error.message_dict.items())
            ) from error
        if changes:
            self._save(project, changes)
        for field in FIELDS:
            value = getattr(project, field)
            self.stdout.write(f"{field.replace('_', ' ')}: {'no limit' if value is None else value}")
        for field in LISTS:
            self.stdout.write(f"{field.replace('_', ' ')}: {', '.join(getattr(project, field)) or 'no limit'}")
        if project.spend_per_month is not None and not settings.RESPONSES_PRICES:
            self.stderr.write(NO_PRICES)
        if not any(model.objects.filter(project=name).exists() for model in (ApiKey, Membership)):
            self.stderr.write(f"WARNING: The project {name!r} has no key and no member. The limits hold as soon as it has.")

    def _save(self, project: Project, changes: Iterable[str]) -> None:
        """Save the project with an entry of the audit log, as a change in the admin has one."""
        verb = "create" if project.pk is None else "change"
        with transaction.atomic():
            project.save()
            what = f"project {project}: {', '.join(changes)}"
            audit_log.record(audit_log.command(), f"project.{verb}", what, project.name)


def _tool(text: str) -> str:
    return text if text == "0" else tool_name(text)
